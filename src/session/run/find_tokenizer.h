// src/session/run/find_tokenizer.h
//
// The tokenizer belongs to the weights. A run whose tokenizer comes from files keeps them in RUN/tokenizer/, and the
// fingerprint in its checkpoints, so that text can be made of them when the files it was trained with are gone or have
// changed.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/manifest.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {

inline constexpr const char* kTokenizerFolder = "tokenizer";
// In TrainState::extra.
inline constexpr const char* kTokenizerFingerprint = "tokenizer.fingerprint";
// Instead of a fingerprint: the weights came from elsewhere, without a tokenizer.
inline constexpr const char* kUnknownTokenizer = "unknown";

// Writes Tokenizer::files() into FOLDER/tokenizer/ (nothing where there are none). What is there is replaced.
void WriteTokenizer(const std::string& folder, const tokenizer::Tokenizer& tokenizer);

// What LoadTokenizer takes: `configured` when it is "bytes"; else tokenizer/ in the checkpoint's own folder, in the one
// around it, or in the run's; else `configured`, the place it was trained with.
std::string FindTokenizer(const std::string& checkpoint, const std::string& configured);

// UserError when the checkpoint was trained with another tokenizer. One that does not say (older) is taken.
void RequireTokenizer(const checkpoint::TrainState& state, const std::string& checkpoint,
                      const tokenizer::Tokenizer& tokenizer);

// FindTokenizer or `given` (when not empty), loaded and checked. UserError when it is unknown and none is given.
std::shared_ptr<const tokenizer::Tokenizer> OpenTokenizer(const checkpoint::TrainState& state,
                                                          const std::string& checkpoint, const std::string& configured,
                                                          const std::string& given = "");

}  // namespace penstock::session
