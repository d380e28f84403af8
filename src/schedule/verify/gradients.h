// src/schedule/verify/gradients.h
//
// From the halves of the backward to the update, on every rank in program order: a use is reduced when all its
// contributions of the rank are in it, the uses of a shared unit are summed when each is reduced, norm and update see
// the final gradient, the update comes after the check that guards it, and every holder updates once. Collectives run
// over the ranks that the holders name, the statistics over all ranks (else they would decide differently).
#pragma once

#include "schedule/verify/faults.h"

namespace penstock::schedule::verify {

void CheckGradients(const Schedule& schedule, const VerifyOptions& options, Faults& faults);

}  // namespace penstock::schedule::verify
