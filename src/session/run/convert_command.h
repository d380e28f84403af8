// src/session/run/convert_command.h
//
// `penstock checkpoint convert FROM TO`: a Hugging Face model folder into a checkpoint that train, generate and eval
// take, or a checkpoint into a folder that `from_pretrained` takes. Which way follows from FROM.
//
// TO appears whole or not at all, and must not be there before. Memory: one tensor at a time.
#pragma once

#include <iosfwd>
#include <string>

namespace penstock::session {

// In TrainState::extra, before the key: what a config.json said that is no setting of ours. Runs that start from the
// weights hand it on.
inline const std::string kFromHuggingFace = "huggingface.";

struct ConvertCommandOptions {
  std::string from;
  std::string to;
  std::string dtype;      // of an export; empty: fp32
  std::string max_shard;  // largest file of an export; empty: 5 GiB
  std::string tokenizer;  // instead of the one that is there
};

// 0; UserError for what cannot be converted.
int RunConvertCheckpoint(const ConvertCommandOptions& options, std::ostream& out);

}  // namespace penstock::session
