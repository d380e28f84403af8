// src/session/run/emulate_command.h
//
// `penstock emulate CONFIG`: the plan that `simulate` predicts, on as many rank threads that sleep for as long as each
// action is priced, with messages that travel: what really happens to a schedule of more ranks than this machine has
// cores, held against its simulation.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace penstock::session {

struct EmulateCommandOptions {
  std::string config;
  std::vector<std::string> assignments;
  double seconds = 10;  // that the emulation of a step should last
  std::string out;      // directory, created; empty: nothing is written
  bool json = false;
};
int RunEmulate(const EmulateCommandOptions& options, std::ostream& out);

}  // namespace penstock::session
