// src/session/run/generate_command.h
//
// `penstock generate`: text from a checkpoint of a run (docs/generate_eval.md).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace penstock::session {

struct GenerateOptions {
  std::string from{};         // a checkpoint, a directory of checkpoints, or a run directory
  std::string prompt{};       // empty: the beginning of a document
  std::string prompt_file{};  // instead of it
  std::string tokenizer{};    // instead of the run's
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t top_k = 0;
  double top_p = 1.0;
  int64_t seed = 1;
  int64_t samples = 1;
  bool stop_at_end = false;
  bool specials = false;
  bool no_cache = false;
  bool raw = false;  // bytes as the model makes them, valid text or not
  int64_t threads = 0;
  bool json = false;
};

// The text is written to `out` as it is made: valid UTF-8 whatever the model says, unless `raw`.
int RunGenerate(const GenerateOptions& options, std::ostream& out);

}  // namespace penstock::session
