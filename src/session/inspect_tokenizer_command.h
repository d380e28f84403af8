// src/session/inspect_tokenizer_command.h
//
// `penstock tokenizer inspect`: what a tokenizer is, and what it makes of a text.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

namespace penstock::session {

struct InspectTokenizerCommand {
  std::string tokenizer;            // as LoadTokenizer takes it
  std::optional<std::string> text;  // to encode
  bool json = false;
};

// Exit code 0, or UserError of LoadTokenizer.
int RunInspectTokenizer(const InspectTokenizerCommand& command, std::ostream& out);

}  // namespace penstock::session
