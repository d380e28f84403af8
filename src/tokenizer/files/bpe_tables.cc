#include "tokenizer/files/bpe_tables.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "tokenizer/bpe/decode.h"
#include "tokenizer/files/byte_alphabet.h"

namespace penstock::tokenizer {

void CheckTokenId(int64_t id, size_t tokens, const std::string& where) {
  const int64_t limit = 2 * static_cast<int64_t>(tokens) + (int64_t{1} << 20);
  if (id < 0 || id >= limit) throw UserError("{}: id {} is not in [0, {})", where, id, limit);
}

std::pair<std::string, std::string> SplitMerge(const std::string& line, const std::string& where) {
  const size_t space = line.find(' ');
  if (space == std::string::npos || space == 0 || space + 1 == line.size() ||
      line.find(' ', space + 1) != std::string::npos)
    throw UserError("{}: '{}' is not two tokens with a space between them", where, line);
  return {line.substr(0, space), line.substr(space + 1)};
}

void FillTables(const std::vector<SpelledToken>& tokens, const std::vector<std::pair<std::string, std::string>>& merges,
                const std::string& where, BpeTables& tables) {
  int64_t last = -1;
  for (const SpelledToken& token : tokens) {
    CheckTokenId(token.id, tokens.size(), fmt::format("{}: vocab: '{}'", where, token.text));
    last = std::max(last, token.id);
  }
  tables.tokens.assign(static_cast<size_t>(last + 1), "");
  std::vector<bool> given(tables.tokens.size());
  std::unordered_map<std::string, int32_t> by_spelling;
  for (const SpelledToken& token : tokens) {
    const auto id = static_cast<size_t>(token.id);
    if (given[id]) throw UserError("{}: vocab: id {} is given to '{}' and to another token", where, id, token.text);
    given[id] = true;
    // What is not spelled in the alphabet is no outcome of merges: a special token, which keeps its text.
    const auto bytes = tables.byte_level ? FromAlphabet(token.text) : std::nullopt;
    tables.tokens[id] = bytes ? *bytes : token.text;
    by_spelling.emplace(token.text, static_cast<int32_t>(id));
  }
  tables.merges.clear();
  tables.merges.reserve(merges.size());
  const auto id_of = [&](const std::string& text, size_t i) {
    const auto found = by_spelling.find(text);
    if (found == by_spelling.end())
      throw UserError("{}: merges[{}]: the token '{}' is not in the vocab", where, i, text);
    return found->second;
  };
  for (size_t i = 0; i < merges.size(); ++i) {
    const auto& [left, right] = merges[i];
    tables.merges.push_back({id_of(left, i), id_of(right, i), id_of(left + right, i)});
  }
}

bool KeepSpecialsOutOfText(const std::vector<AddedToken>& added, const std::string& where, BpeTables& tables) {
  std::vector<bool> special(tables.tokens.size());
  for (const AddedToken& token : added) {
    if (!token.special || static_cast<size_t>(token.id) >= tables.tokens.size()) continue;
    if (tables.byte_fallback && ByteOfToken(token.text) >= 0) continue;  // stands for a byte that is in the text
    tables.specials.push_back(token.id);
    special[static_cast<size_t>(token.id)] = true;
    const auto bytes = tables.byte_level ? FromAlphabet(token.text) : std::nullopt;
    if (bytes && bytes->size() == 1 && tables.tokens[static_cast<size_t>(token.id)] == *bytes)
      throw UserError(
          "{}: '{}' (id {}) is a special token and the token of a byte: text with that byte would become it", where,
          token.text, token.id);
  }
  return std::any_of(tables.merges.begin(), tables.merges.end(),
                     [&](const BpeTables::Merge& merge) { return special[static_cast<size_t>(merge.merged)]; });
}

}  // namespace penstock::tokenizer
