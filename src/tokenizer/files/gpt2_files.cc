#include "base/hash.h"
#include "tokenizer/bpe/bpe_tokenizer.h"
#include "tokenizer/files/bpe_tables.h"
#include "tokenizer/files/files.h"
#include "tokenizer/files/json.h"

namespace penstock::tokenizer {

std::shared_ptr<const Tokenizer> ReadGpt2Files(const std::string& vocabulary_path, const std::string& merges_path,
                                               const TokenizerSettings& settings) {
  const std::string vocabulary_text = ReadFile(vocabulary_path), merges_text = ReadFile(merges_path);
  const Json vocabulary = ParseJsonObject(vocabulary_text, vocabulary_path);
  BpeParts parts;
  std::vector<SpelledToken> tokens;
  for (const auto& [text, id] : vocabulary.items()) {
    if (!id.is_number_integer()) throw UserError("{}: the id of '{}' is no integer", vocabulary_path, text);
    tokens.push_back({text, id.get<int64_t>()});
  }
  std::vector<std::pair<std::string, std::string>> merges;
  size_t line_number = 0;
  for (std::string_view rest = merges_text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    merges.push_back(SplitMerge(line, fmt::format("{}:{}", merges_path, line_number)));
  }
  FillTables(tokens, merges, vocabulary_path + " and " + merges_path, parts.tables);
  parts.pre_tokenizer = MakeScan(ScanPattern::kGpt2);
  parts.lossless = parts.cuts_at_lines = parts.cuts_at_words = true;

  const auto add = [&](const std::string& text) {
    const auto found = vocabulary.find(text);
    if (found == vocabulary.end() || parts.end_of_document >= 0) return;
    parts.end_of_document = found->get<int32_t>();
    parts.added.push_back({.id = parts.end_of_document, .text = text, .special = true});
  };
  if (settings.end_of_text) add(*settings.end_of_text);
  for (const std::string& text : UsualEndsOfText()) add(text);
  const bool spells_specials = KeepSpecialsOutOfText(parts.added, vocabulary_path, parts.tables);

  parts.fingerprint = "bpe-" + Hasher()
                                   .Update(vocabulary_text)
                                   .Update(merges_text)
                                   .Update(static_cast<uint64_t>(parts.end_of_document))
                                   .Update(spells_specials ? "special tokens apart" : "")
                                   .Digest()
                                   .Hex();
  parts.name = fmt::format("BPE of {} and {}", vocabulary_path, merges_path);
  parts.description = {{"kind", "byte-level BPE (vocab.json and merges.txt)"},
                       {"pieces", "the pattern of gpt2"},
                       {"merges", std::to_string(parts.tables.merges.size())}};
  parts.files = settings.files;
  parts.files.push_back({"vocab.json", vocabulary_text});
  parts.files.push_back({"merges.txt", merges_text});
  return std::make_shared<BpeTokenizer>(std::move(parts));
}

}  // namespace penstock::tokenizer
