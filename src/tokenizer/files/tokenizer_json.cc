#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "tokenizer/bpe/bpe_tokenizer.h"
#include "tokenizer/files/bpe_tables.h"
#include "tokenizer/files/describe_step.h"
#include "tokenizer/files/files.h"
#include "tokenizer/files/json.h"
#include "tokenizer/files/parse_steps.h"

namespace penstock::tokenizer {
namespace {

void RefuseText(const Json& model, const char* key, const std::string& where) {
  if (!GetOr<std::string>(model, key, "", where).empty()) throw UserError("{}: '{}' is not supported", where, key);
}

BpeTables ParseModel(const Json& model, bool byte_level, const std::string& path) {
  const std::string where = path + ": model";
  if (!model.is_object()) throw UserError("{} is no object", where);
  const auto type = GetOr<std::string>(model, "type", "BPE", where);
  if (type != "BPE")
    throw UserError("{} is of type {}; supported is BPE (models of SentencePiece are read from their .model file)",
                    where, type);
  RefuseText(model, "continuing_subword_prefix", where);
  RefuseText(model, "end_of_word_suffix", where);
  if (GetOr<double>(model, "dropout", 0, where) != 0) throw UserError("{}: 'dropout' is not supported", where);

  BpeTables tables;
  tables.byte_level = byte_level;
  tables.ignore_merges = GetOr<bool>(model, "ignore_merges", false, where);
  tables.byte_fallback = GetOr<bool>(model, "byte_fallback", false, where);
  tables.fuse_unknown = GetOr<bool>(model, "fuse_unk", false, where);

  const Json& vocabulary = Member(model, "vocab");
  if (!vocabulary.is_object()) throw UserError("{}: 'vocab' is no object of texts and ids", where);
  std::vector<SpelledToken> tokens;
  for (const auto& [text, id] : vocabulary.items()) {
    if (!id.is_number_integer()) throw UserError("{}: vocab: the id of '{}' is no integer", where, text);
    tokens.push_back({text, id.get<int64_t>()});
  }
  const Json& merges = Member(model, "merges");
  if (!merges.is_array()) throw UserError("{}: 'merges' is no list", where);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < merges.size(); ++i) {
    const Json& merge = merges[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      pairs.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else if (merge.is_string()) {
      pairs.push_back(SplitMerge(merge.get_ref<const std::string&>(), fmt::format("{}: merges[{}]", where, i)));
    } else {
      throw UserError("{}: merges[{}] is neither \"a b\" nor [\"a\", \"b\"]", where, i);
    }
  }
  FillTables(tokens, pairs, where, tables);
  const auto unknown = GetOr<std::string>(model, "unk_token", "", where);
  if (!unknown.empty()) {
    const auto found = vocabulary.find(unknown);
    if (found == vocabulary.end()) throw UserError("{}: the unk_token '{}' is not in its vocab", where, unknown);
    tables.unknown = found->get<int32_t>();
  }
  return tables;
}

std::vector<AddedToken> ParseAddedTokens(const Json& list, size_t tokens, const std::string& path) {
  std::vector<AddedToken> added;
  if (list.is_null()) return added;
  if (!list.is_array()) throw UserError("{}: 'added_tokens' is no list", path);
  std::set<int64_t> ids;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: added_tokens[{}]", path, i);
    if (!list[i].is_object()) throw UserError("{} is no object", where);
    const auto id = Get<int64_t>(list[i], "id", where);
    CheckTokenId(id, tokens + list.size(), where);
    if (!ids.insert(id).second) throw UserError("{}: id {} is given twice", where, id);
    added.push_back({.id = static_cast<int32_t>(id),
                     .text = Get<std::string>(list[i], "content", where),
                     .special = GetOr<bool>(list[i], "special", false, where),
                     .single_word = GetOr<bool>(list[i], "single_word", false, where),
                     .lstrip = GetOr<bool>(list[i], "lstrip", false, where),
                     .rstrip = GetOr<bool>(list[i], "rstrip", false, where),
                     .normalized = GetOr<bool>(list[i], "normalized", true, where)});
  }
  return added;
}

// The id that a post-processor puts before a text.
std::optional<int32_t> ParseBeginning(const Json& step, const std::string& where) {
  if (step.is_null()) return std::nullopt;
  const std::string type = TypeOf(step, where);
  if (type == "Sequence") {
    const Json& list = Member(step, "processors");
    if (!list.is_array()) throw UserError("{}: 'processors' is no list", where);
    for (const Json& one : list)
      if (const auto id = ParseBeginning(one, where)) return id;
    return std::nullopt;
  }
  if (type == "TemplateProcessing") {
    const Json& single = Member(step, "single");
    if (!single.is_array() || single.empty() || !single[0].is_object()) return std::nullopt;
    const Json& token = Member(single[0], "SpecialToken");
    if (!token.is_object()) return std::nullopt;
    const auto name = Get<std::string>(token, "id", where);
    const Json& ids = Member(Member(Member(step, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array() || ids.empty() || !ids[0].is_number_integer())
      throw UserError("{}: the ids of its special token '{}' are missing", where, name);
    return ids[0].get<int32_t>();
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const Json& cls = Member(step, "cls");
    if (cls.is_array() && cls.size() == 2 && cls[1].is_number_integer()) return cls[1].get<int32_t>();
  }
  return std::nullopt;  // others leave the ids alone
}

}  // namespace

std::shared_ptr<const Tokenizer> ReadTokenizerJson(const std::string& path, const TokenizerSettings& settings) {
  const std::string content = ReadFile(path);
  const Json json = ParseJsonObject(content, path);

  BpeParts parts;
  ParsedNormalizer normalizer = ParseNormalizer(Member(json, "normalizer"), path + ": normalizer");
  ParsedPreTokenizer pre = ParsePreTokenizer(Member(json, "pre_tokenizer"), path + ": pre_tokenizer");
  ParsedDecoder decoder = ParseDecoder(Member(json, "decoder"), path + ": decoder");
  if (decoder.byte_level != pre.byte_level && !(pre.byte_level && Member(json, "decoder").is_null()))
    throw UserError("{}: a ByteLevel decoder and a ByteLevel pre_tokenizer go together, here is one without the other",
                    path);
  parts.tables = ParseModel(Member(json, "model"), pre.byte_level, path);
  parts.added = ParseAddedTokens(Member(json, "added_tokens"), parts.tables.tokens.size(), path);
  const bool spells_specials = KeepSpecialsOutOfText(parts.added, path + ": added_tokens", parts.tables);

  // Tokens of the vocabulary that are added too are found in the text, not by merging: they keep their id.
  std::unordered_map<std::string, int32_t> by_text;
  for (const auto& [text, id] : Member(Member(json, "model"), "vocab").items()) by_text[text] = id.get<int32_t>();
  for (const AddedToken& token : parts.added) {
    const auto found = by_text.find(token.text);
    if (found != by_text.end() && found->second != token.id)
      throw UserError("{}: the token '{}' has id {} in the vocab, and {} among the added_tokens", path, token.text,
                      found->second, token.id);
    by_text[token.text] = token.id;
  }

  bool added_cut = true, added_keep = true, added_words = true;
  for (const AddedToken& token : parts.added) {
    if (token.special) continue;
    added_keep = added_keep && !token.lstrip && !token.rstrip && !(token.normalized && !normalizer.keeps_bytes);
    added_cut = added_cut && !token.lstrip && !token.rstrip && token.text.find('\n') == std::string::npos;
    added_words = added_words && token.text.find(' ') == std::string::npos;
  }
  parts.lossless = normalizer.keeps_bytes && pre.keeps_bytes && pre.byte_level && added_keep;
  parts.cuts_at_lines = normalizer.cuts_at_lines && pre.cuts_at_lines && added_cut;
  // What cuts at lines does so by a known pattern, and those cut there too.
  parts.cuts_at_words = parts.cuts_at_lines && added_words;
  parts.normalizer = std::move(normalizer.normalizer);
  parts.pre_tokenizer = std::move(pre.pre_tokenizer);
  parts.decoder = std::move(decoder.decoder);

  const auto id_of = [&](const std::string& text) {
    const auto found = by_text.find(text);
    return found == by_text.end() ? -1 : found->second;
  };
  if (settings.end_of_text) parts.end_of_document = id_of(*settings.end_of_text);
  for (const std::string& text : UsualEndsOfText())
    if (parts.end_of_document < 0) parts.end_of_document = id_of(text);
  if (settings.add_beginning.value_or(true))
    parts.beginning_of_text = ParseBeginning(Member(json, "post_processor"), path + ": post_processor");
  if (!parts.beginning_of_text && settings.add_beginning.value_or(false) && settings.beginning_of_text)
    if (const int32_t id = id_of(*settings.beginning_of_text); id >= 0) parts.beginning_of_text = id;

  Hasher hasher;
  for (const char* key : {"normalizer", "pre_tokenizer", "model", "added_tokens"})
    hasher.Update(Member(json, key).dump());
  hasher.Update(static_cast<uint64_t>(parts.end_of_document));
  // Such text had other ids before they were kept apart.
  if (spells_specials) hasher.Update("special tokens apart");
  parts.fingerprint = "bpe-" + hasher.Digest().Hex();
  parts.name = fmt::format("BPE of {}", path);
  parts.description = {
      {"kind", fmt::format("{} (tokenizer.json)", pre.byte_level ? "byte-level BPE"
                                                  : parts.tables.byte_fallback
                                                      ? "BPE of characters, with bytes for those that are missing"
                                                      : "BPE of characters")},
      {"normalizer", DescribeStep(Member(json, "normalizer"))},
      {"pieces", DescribeStep(Member(json, "pre_tokenizer"))},
      {"merges", fmt::format("{}{}{}", parts.tables.merges.size(),
                             spells_specials ? "; where they spell a special token, text keeps the tokens before" : "",
                             parts.tables.ignore_merges ? "; a piece that is a token is taken as it is" : "")},
      {"decoder", decoder.byte_level ? "ByteLevel" : DescribeStep(Member(json, "decoder"))}};
  parts.files = settings.files;
  parts.files.push_back({"tokenizer.json", content});
  return std::make_shared<BpeTokenizer>(std::move(parts));
}

}  // namespace penstock::tokenizer
