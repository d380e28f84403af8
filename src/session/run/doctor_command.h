// src/session/run/doctor_command.h
//
// `penstock doctor`: what this machine and this libtorch do, measured in a few seconds, and what would make runs wrong
// or slow.
#pragma once

#include <iosfwd>

namespace penstock::session {

struct DoctorOptions {
  bool calibrate = false;  // also measure what `simulate` and `train` predict with, and write it down
  bool json = false;
};
// 0: all is well (there may be warnings about speed); 1: something would make runs wrong.
int RunDoctor(const DoctorOptions& options, std::ostream& out);

}  // namespace penstock::session
