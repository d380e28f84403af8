#include "tokenizer/train_bpe.h"

#include <algorithm>
#include <cctype>
#include <mutex>
#include <unordered_set>

#include "base/nearest.h"
#include "base/utf8.h"
#include "tokenizer/files/byte_alphabet.h"
#include "tokenizer/files/json.h"
#include "tokenizer/files/parse_steps.h"
#include "tokenizer/train/merge_learner.h"

namespace penstock::tokenizer {
namespace {

struct HashOfText {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Counts = std::unordered_map<std::string, int64_t, HashOfText, std::equal_to<>>;

// A tokenizer.json without a vocabulary. Key by key in the order of published files.
nlohmann::ordered_json Skeleton(const BpeTrainOptions& options) {
  nlohmann::ordered_json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  json["added_tokens"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < options.special_tokens.size(); ++i)
    json["added_tokens"].push_back({{"id", i},
                                    {"content", options.special_tokens[i]},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", true}});
  json["normalizer"] = nullptr;
  if (options.normalizer == "nfc")
    json["normalizer"] = {{"type", "NFC"}};
  else if (options.normalizer == "nfkc")
    json["normalizer"] = {{"type", "NFKC"}};
  else if (options.normalizer != "none")
    throw UserError("there is no normalizer '{}'{}", options.normalizer,
                    DidYouMean(options.normalizer, {"none", "nfc", "nfkc"}));
  const auto byte_level = [](bool use_regex) -> nlohmann::ordered_json {
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", use_regex}};
  };
  if (options.pattern == "gpt2") {
    json["pre_tokenizer"] = byte_level(true);
  } else {
    const std::string regex = options.pattern == "llama3"  ? std::string(RegexOf(ScanPattern::kLlama3))
                              : options.pattern == "qwen2" ? std::string(RegexOf(ScanPattern::kQwen2))
                                                           : options.pattern;
    json["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}},
          byte_level(false)}}};
  }
  json["post_processor"] = nullptr;
  json["decoder"] = byte_level(true);
  return json;
}

}  // namespace

struct BpeTrainer::Parts {
  BpeTrainOptions options;
  nlohmann::ordered_json json;
  ParsedNormalizer normalizer;
  ParsedPreTokenizer pre_tokenizer;
  std::mutex mutex;
  std::vector<std::unique_ptr<Counts>> counts;  // one for every thread that counted at the same time
};

BpeTrainer::BpeTrainer(BpeTrainOptions options) : parts_(std::make_unique<Parts>()) {
  const size_t least = 256 + options.special_tokens.size();
  if (options.vocabulary < static_cast<int64_t>(least))
    throw UserError("a vocabulary of {} has no room for 256 bytes and {} special tokens; at least {}",
                    options.vocabulary, options.special_tokens.size(), least);
  std::vector<std::string> specials = options.special_tokens;
  std::sort(specials.begin(), specials.end());
  if (std::adjacent_find(specials.begin(), specials.end()) != specials.end())
    throw UserError("the special token '{}' is given twice", *std::adjacent_find(specials.begin(), specials.end()));
  if (!specials.empty() && specials.front().empty()) throw UserError("a special token is empty");
  for (const std::string& text : specials) {
    if (!IsUtf8(text)) throw UserError("a special token is no UTF-8");
    if (const auto bytes = FromAlphabet(text); bytes && bytes->size() == 1)
      throw UserError("the special token '{}' is how a tokenizer.json spells a byte; choose a longer one", text);
  }
  // A word that is no name of ours would, as an expression, match itself alone.
  const bool word = std::all_of(options.pattern.begin(), options.pattern.end(),
                                [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
  if (word && options.pattern != "gpt2" && options.pattern != "llama3" && options.pattern != "qwen2")
    throw UserError("there is no pattern '{}'; known: gpt2, llama3, qwen2, or a regular expression", options.pattern);
  if (!IsUtf8(options.pattern)) throw UserError("the pattern is no UTF-8");
  parts_->json = Skeleton(options);
  parts_->normalizer = ParseNormalizer(Json(parts_->json["normalizer"]), "normalizer");
  parts_->pre_tokenizer = ParsePreTokenizer(Json(parts_->json["pre_tokenizer"]), "pattern");
  parts_->options = std::move(options);
}

BpeTrainer::~BpeTrainer() = default;

bool BpeTrainer::CutsAtLines() const { return parts_->normalizer.cuts_at_lines && parts_->pre_tokenizer.cuts_at_lines; }
// What cuts at lines does so by a known pattern, and those cut there too.
bool BpeTrainer::CutsAtWords() const { return CutsAtLines(); }

void BpeTrainer::Count(std::string_view text) {
  if (text.empty()) return;
  std::unique_ptr<Counts> counts;
  {
    const std::lock_guard lock(parts_->mutex);
    if (!parts_->counts.empty()) {
      counts = std::move(parts_->counts.back());
      parts_->counts.pop_back();
    }
  }
  if (counts == nullptr) counts = std::make_unique<Counts>();
  std::string normalized;
  if (parts_->normalizer.normalizer != nullptr) {
    normalized = parts_->normalizer.normalizer->Apply(std::string(text));
    text = normalized;
  }
  Pieces pieces;
  pieces.pieces.push_back({text, true});
  parts_->pre_tokenizer.pre_tokenizer->Apply(pieces);
  for (const Pieces::Piece& piece : pieces.pieces) {
    const auto found = counts->find(piece.text);
    if (found != counts->end())
      ++found->second;
    else
      counts->emplace(piece.text, 1);
  }
  const std::lock_guard lock(parts_->mutex);
  parts_->counts.push_back(std::move(counts));
}

BpeTrainer::Result BpeTrainer::Train(const std::function<void(int64_t, int64_t)>& progress) {
  Counts all;
  for (auto& counts : parts_->counts) {
    if (all.empty())
      all = std::move(*counts);
    else
      for (const auto& [piece, count] : *counts) all[piece] += count;
    counts.reset();
  }
  parts_->counts.clear();

  // Ids: special tokens, then the bytes in the order of their spelling.
  std::vector<std::string> tokens = parts_->options.special_tokens;
  std::vector<std::pair<std::string, int>> bytes;
  for (int b = 0; b < 256; ++b) bytes.emplace_back(ToAlphabet(std::string(1, static_cast<char>(b))), b);
  std::sort(bytes.begin(), bytes.end());
  int32_t byte_ids[256];
  for (const auto& [spelling, b] : bytes) {
    byte_ids[b] = static_cast<int32_t>(tokens.size());
    tokens.push_back(std::string(1, static_cast<char>(b)));
  }
  size_t length = 0;
  for (const auto& [piece, count] : all) length += piece.size();
  if (length > UINT32_MAX)
    throw UserError("the distinct pieces of the text are longer than 4 GiB together; the pattern cuts it too coarsely");
  // A token of these bytes would be spelled like the special one.
  std::unordered_set<std::string> reserved;
  for (const std::string& text : parts_->options.special_tokens)
    if (auto spelled = FromAlphabet(text)) reserved.insert(std::move(*spelled));
  MergeLearner learner(tokens, byte_ids, std::move(reserved));
  Result result;
  for (const auto& [piece, count] : all) {
    learner.AddWord(piece, count);
    result.pieces += count;
  }
  result.distinct_pieces = static_cast<int64_t>(all.size());
  all.clear();
  learner.Learn(parts_->options.vocabulary, parts_->options.min_frequency, progress);
  result.vocabulary = static_cast<int32_t>(learner.tokens().size());
  result.merges = static_cast<int64_t>(learner.merges().size());
  result.last_frequency = learner.last_frequency();

  nlohmann::ordered_json model;
  model["type"] = "BPE";
  for (const char* key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    model[key] = nullptr;
  model["fuse_unk"] = model["byte_fallback"] = model["ignore_merges"] = false;
  const auto spell = [&](int32_t id) {
    const std::string& token = learner.tokens()[static_cast<size_t>(id)];
    return static_cast<size_t>(id) < parts_->options.special_tokens.size() ? token : ToAlphabet(token);
  };
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object(), merges = nlohmann::ordered_json::array();
  // ordered_json looks through all keys at each insertion by name; the container underneath does not.
  auto& entries = vocabulary.get_ref<nlohmann::ordered_json::object_t&>();
  for (int32_t id = 0; id < result.vocabulary; ++id)
    entries.nlohmann::ordered_json::object_t::Container::emplace_back(spell(id), id);
  for (const BpeTables::Merge& merge : learner.merges()) merges.push_back({spell(merge.left), spell(merge.right)});
  model["vocab"] = std::move(vocabulary);
  model["merges"] = std::move(merges);
  parts_->json["model"] = std::move(model);
  nlohmann::ordered_json settings = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!parts_->options.special_tokens.empty()) settings["eos_token"] = parts_->options.special_tokens.front();
  settings["clean_up_tokenization_spaces"] = false;
  result.settings_json = settings.dump(2) + "\n";
  result.tokenizer_json = parts_->json.dump(1) + "\n";
  return result;
}

}  // namespace penstock::tokenizer
