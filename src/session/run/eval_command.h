// src/session/run/eval_command.h
//
// `penstock eval`: how well a trained model predicts a text (docs/generate_eval.md).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace penstock::session {

struct EvalOptions {
  std::string from{};       // a checkpoint, a directory of checkpoints, or a run directory
  std::string data{};       // a text file, a folder of them, or a file of tokens (*.tokens); empty: the run's own data
  std::string split{};      // of the run's own data: validation (also when empty) or train
  std::string tokenizer{};  // instead of the run's
  int64_t window = 0;       // tokens; 0: data.sequence of the run
  int64_t stride = 0;       // 0: the window
  int64_t batch = 8;        // windows at once
  int64_t max_windows = 0;  // 0: all
  int64_t threads = 0;
  bool json = false;
};

int RunEval(const EvalOptions& options, std::ostream& out);

}  // namespace penstock::session
