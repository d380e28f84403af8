// src/comm/mpi/mpi_session.h
//
// MPI of this process: begun once, ended with the process.
#pragma once

#include <string>

namespace penstock::comm {

// Begins MPI at the first call. UserError when it belongs to another launcher or cannot be called from a progress
// thread.
void BeginMpi();
// A peer was lost: MPI will not be ended, because that waits for all.
void GiveUpMpi();
bool MpiGivenUp();

// WorldError with MPI's words unless `code` is success.
void CheckMpi(int code, const char* call);

}  // namespace penstock::comm
