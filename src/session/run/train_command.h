// src/session/run/train_command.h
//
// `penstock train`: verify, run, report. Everything is in the run directory afterwards: configuration, schedule,
// metrics, timeline, trace, drawing, checkpoints.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace penstock::runtime {
struct Job;
}

namespace penstock::session {

struct TrainOptions {
  std::string config;
  std::vector<std::string> assignments;
  bool json = false;
  // Fault seam of tests: changes the job before it runs.
  std::function<void(runtime::Job& job)> change_job = {};
};

// Exit code 0, or throws: UserError, WorldError (also when training ended on a non-finite step). With `json` the
// summary is one document on `out` and progress goes to `log`.
int RunTrain(const TrainOptions& options, std::ostream& out, std::ostream& log);

}  // namespace penstock::session
