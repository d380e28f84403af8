// src/session/tokenize_command.h
//
// `penstock tokenize`: text to token files (docs/data.md).
#pragma once

#include <iosfwd>
#include <string>

#include "data/tokenize.h"

namespace penstock::session {

struct TokenizeCommand {
  data::TokenizeOptions tokenize;
  std::string tokenizer = "bytes";
  int64_t threads = 0;  // 0: as many as the machine has cores
  std::string part = "64 MiB";
  int64_t validation_seed = 0;
  bool json = false;
};

// Exit code 0, or throws. Results go to `out`, progress to `log`.
int RunTokenize(const TokenizeCommand& command, std::ostream& out, std::ostream& log);

}  // namespace penstock::session
