// src/session/run/generate_command.h
//
// `penstock generate`: text from a checkpoint of a run.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace penstock::session {

struct GenerateOptions {
  std::string from;  // a checkpoint, a directory of checkpoints, or a run directory
  std::string prompt = "def ";
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t top_k = 0;
  int64_t seed = 1;
  bool json = false;
};

// The text is written to `out` as it is made.
int RunGenerate(const GenerateOptions& options, std::ostream& out);

}  // namespace penstock::session
