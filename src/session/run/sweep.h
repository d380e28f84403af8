// src/session/run/sweep.h
//
// One computation in many layouts, each compared bit by bit with the plain single-rank loop.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "session/settings.h"

namespace penstock::session {

// Fresh settings with further assignments on top (layouts differ by assignments only).
using SettingsFactory = std::function<std::unique_ptr<LoadedSettings>(const std::vector<std::string>& assignments)>;

struct SweepOptions {
  std::vector<int> data = {1, 2, 4};
  std::vector<int> pipeline = {1, 2, 4};
  std::vector<int> chunks = {1, 2};
  std::vector<std::string> schedules;  // empty: all that are registered
  std::vector<std::string> recompute = {"none", "full"};
  bool split_variants = true;    // also split_backward = always where the schedule does not split
  bool serial_variants = false;  // also runtime.serial
};

struct SweepResult {
  int compared = 0;
  int refused = 0;                     // layouts that are impossible, each with a reason
  std::vector<std::string> refusals;   // the distinct reasons
  std::vector<std::string> differing;  // layout and first difference
  // Plain loop against one plain backward over the whole batch: largest difference of a final parameter or optimizer
  // state, relative to its tensor. An optimizer that divides by the size of the gradient (Adam) makes much of rounding
  // where the true gradient is zero; whether it is more than that says oracle_fault (rounding.h), empty when not.
  double oracle_difference = 0;
  std::string oracle_fault;
  bool ok() const { return compared > 0 && differing.empty() && oracle_fault.empty(); }
};

// Sets numerics.reproducible. `progress` (may be null) gets a line per layout. `dataset`: instead of [data].
SweepResult Sweep(const SettingsFactory& factory, const SweepOptions& options,
                  std::shared_ptr<const data::Dataset> dataset, std::ostream* progress);

}  // namespace penstock::session
