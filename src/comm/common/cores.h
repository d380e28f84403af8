// src/comm/common/cores.h
//
// Cores this process may use (the affinity mask, which containers and taskset narrow).
#pragma once

namespace penstock::comm {

int AvailableCores();

}  // namespace penstock::comm
