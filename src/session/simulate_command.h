// src/session/simulate_command.h
//
// `penstock simulate CONFIG`: time and memory of a plan on a cluster, from the same schedule that `train` runs. Needs
// no libtorch. With a directory everything is kept there as a run keeps it: schedule, predicted timeline, trace,
// drawing, report.html.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace penstock::session {

struct SimulateOptions {
  std::string config;
  std::vector<std::string> assignments;
  std::string out;  // directory, created; empty: nothing is written
  bool json = false;
};
// 0; a plan that does not fit says so in the output. UserError for what cannot be simulated, and for a directory that
// exists.
int RunSimulate(const SimulateOptions& options, std::ostream& out);

}  // namespace penstock::session
