// src/schedule/verify/structure.h
//
// Are the tables consistent and all indices in range? The other parts of the verifier rely on it.
#pragma once

#include "schedule/verify/faults.h"

namespace penstock::schedule::verify {

// False when something is malformed (then faults say what).
bool CheckStructure(const Schedule& schedule, Faults& faults);

}  // namespace penstock::schedule::verify
