#include "session/inspect_tokenizer_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {
namespace {

using Json = nlohmann::ordered_json;

// On one line, with bytes that are no characters as \xNN. In quotes: white space at the ends can be seen.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const auto first = static_cast<unsigned char>(text.front());
    if (first == '\n')
      out += "\\n";
    else if (first == '\t')
      out += "\\t";
    else if (first == '\r')
      out += "\\r";
    else if (length == 0 || first < 0x20 || first == 0x7F)
      out += fmt::format("\\x{:02x}", first);
    else if (first == '\\' || first == '\'')
      out += std::string("\\") + text.front();
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + "'";
}

std::string TextOf(const tokenizer::Tokenizer& tokenizer, int32_t id) {
  const std::string text = tokenizer.TokenText(id);
  return text.empty() ? "(added for it; it has no text)" : Quoted(text);
}

struct Encoded {
  std::vector<int32_t> ids, with_specials;
  std::string back;
};

void PrintJson(const tokenizer::Tokenizer& tokenizer, const InspectTokenizerCommand& command, const Encoded& encoded,
               std::ostream& out) {
  Json json = {{"name", tokenizer.name()}, {"fingerprint", tokenizer.Fingerprint()}};
  for (const tokenizer::TokenizerPart& part : tokenizer.Describe()) json[part.name] = part.what;
  json["vocabulary"] = tokenizer.vocabulary();
  json["lossless"] = tokenizer.lossless();
  json["encodes_long_texts_in_parts"] = tokenizer.CutsAtLines();
  json["end_of_document"] = tokenizer.end_of_document();
  json["beginning_of_text"] = nullptr;
  if (const auto id = tokenizer.beginning_of_text()) json["beginning_of_text"] = *id;
  json["special_tokens"] = Json::array();
  for (const tokenizer::SpecialToken& token : tokenizer.special_tokens())
    json["special_tokens"].push_back({{"id", token.id}, {"text", token.text}});
  if (command.text) {
    Json pieces = Json::array();
    for (const int32_t id : encoded.ids) pieces.push_back(Quoted(tokenizer.TokenText(id)));
    json["text"] = {{"ids", encoded.ids},
                    {"pieces", pieces},
                    {"decoded", encoded.back},
                    {"same_text", encoded.back == *command.text},
                    {"ids_with_special_tokens", encoded.with_specials}};
  }
  out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void PrintText(const tokenizer::Tokenizer& tokenizer, const InspectTokenizerCommand& command, const Encoded& encoded,
               std::ostream& out) {
  const auto row = [&](std::string_view name, std::string_view what) { out << fmt::format("{:<18}{}\n", name, what); };
  row("name", tokenizer.name());
  for (const tokenizer::TokenizerPart& part : tokenizer.Describe()) row(part.name, part.what);
  row("vocabulary", std::to_string(tokenizer.vocabulary()));
  row("lossless", tokenizer.lossless() ? "yes: decoding gives every text back, byte for byte"
                                       : "no: decoding may give another text back (spaces, normalization)");
  row("long texts", tokenizer.CutsAtLines() ? "are encoded in parts, with the same ids" : "are encoded whole");
  row("end of document",
      fmt::format("{} {}", tokenizer.end_of_document(), TextOf(tokenizer, tokenizer.end_of_document())));
  if (const auto id = tokenizer.beginning_of_text())
    row("beginning of text", fmt::format("{} {}", *id, TextOf(tokenizer, *id)));
  const std::vector<tokenizer::SpecialToken> specials = tokenizer.special_tokens();
  row("special tokens", std::to_string(specials.size()));
  for (const tokenizer::SpecialToken& token : specials)
    out << fmt::format("{:>8}  {}\n", token.id, TextOf(tokenizer, token.id));
  row("fingerprint", tokenizer.Fingerprint());
  if (!command.text) return;
  out << fmt::format("\n{} bytes, {} tokens\n", command.text->size(), encoded.ids.size());
  for (const int32_t id : encoded.ids) out << fmt::format("{:>8}  {}\n", id, Quoted(tokenizer.TokenText(id)));
  if (encoded.back == *command.text)
    out << "decoding gives the text back\n";
  else
    out << fmt::format("decoding gives another text: {}\n", Quoted(encoded.back));
  if (encoded.with_specials != encoded.ids)
    out << fmt::format("with its special tokens recognised: {}\n", fmt::join(encoded.with_specials, " "));
}

}  // namespace

int RunInspectTokenizer(const InspectTokenizerCommand& command, std::ostream& out) {
  const auto tokenizer = tokenizer::LoadTokenizer(command.tokenizer);
  Encoded encoded;
  if (command.text) {
    encoded.ids = tokenizer->Encode(*command.text);
    encoded.with_specials = tokenizer->EncodeWithSpecials(*command.text);
    encoded.back = tokenizer->Decode(encoded.ids);
  }
  command.json ? PrintJson(*tokenizer, command, encoded, out) : PrintText(*tokenizer, command, encoded, out);
  return 0;
}

}  // namespace penstock::session
