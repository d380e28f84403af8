// src/session/train_tokenizer_command.h
//
// `penstock tokenizer train`: a tokenizer learned from text (docs/tokenizers.md).
#pragma once

#include <iosfwd>
#include <string>

#include "data/train_tokenizer.h"

namespace penstock::session {

struct TrainTokenizerCommand {
  data::TrainTokenizerOptions train;
  std::string out;  // the folder for tokenizer.json and tokenizer_config.json
  bool overwrite = false;
  int64_t vocabulary = 32768, min_frequency = 2;
  int64_t threads = 0;  // 0: as many as the machine has cores
  bool json = false;
};

// Exit code 0, or throws; then nothing is written. Results go to `out`, progress to `log`.
int RunTrainTokenizer(const TrainTokenizerCommand& command, std::ostream& out, std::ostream& log);

}  // namespace penstock::session
