// Long texts are encoded in parts, cut where SafeCut says: the ids are those of the whole, for the patterns of
// published byte-level tokenizers and merges that reach over white space, line ends and punctuation.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "data/text_pieces.h"
#include "tokenizer/tokenizer.h"

namespace penstock::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kGpt2 = "";  // what ByteLevel does by itself
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The printable character that stands for a byte in such files.
std::string Letter(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int point = byte;
  if (!printable(byte)) {
    point = 256;
    for (int b = 0; b < byte; ++b) point += !printable(b);
  }
  if (point < 128) return std::string(1, static_cast<char>(point));
  return {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 63))};
}

// Bytes, all pairs of a few troublesome bytes, and triples that start with line ends.
std::shared_ptr<const tokenizer::Tokenizer> Make(const std::string& folder, const std::string& pattern) {
  Json vocabulary = Json::object(), merges = Json::array();
  for (int b = 0; b < 256; ++b) vocabulary[Letter(b)] = vocabulary.size();
  const std::vector<int> bytes = {'\n', ' ', '\r', '\t', '!', '\'', 's', 'a', '1', 0xC3, 0xA9, 0xE6};
  for (const int a : bytes)
    for (const int b : bytes) {
      vocabulary[Letter(a) + Letter(b)] = vocabulary.size();
      merges.push_back(Letter(a) + " " + Letter(b));
    }
  for (const int a : bytes) {
    vocabulary[Letter('\n') + Letter('\n') + Letter(a)] = vocabulary.size();
    merges.push_back(Letter('\n') + Letter('\n') + " " + Letter(a));
  }
  Json before = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", pattern.empty()}};
  if (!pattern.empty())
    before = {{"type", "Sequence"},
              {"pretokenizers",
               {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
                before}}};
  const Json file = {
      {"version", "1.0"},
      {"added_tokens", Json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", before},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tokenizer.json") << file.dump();
  return tokenizer::LoadTokenizer(folder);
}

TEST(ChunkedIds, AreThoseOfTheWhole) {
  const std::string folder = testing::TempDir() + "/penstock_chunked_ids";
  const std::vector<std::string> bits = {
      "\n",  "\n",  "\n",  " ",        "\t",   "\r\n",         "!",        "'s",           "s",    "a",
      "aa",  "1",   "123", "\xc3\xa9", "?",    "\xe6\xbc\xa2", "\xc2\xa0", "\xe3\x80\x80", "\xff", "<|x|>",
      "a b", "s S", "_",   "\n!",      "a\na", "!\n1",         "s\n's"};
  for (const std::string pattern : {kGpt2, kLlama3, kQwen2}) {
    const auto tokenizer = Make(folder, pattern);
    ASSERT_TRUE(tokenizer->CutsAtLines());
    ASSERT_TRUE(tokenizer->CutsAtWords());
    std::mt19937_64 rng(1);
    int64_t cuts = 0, words = 0, unlike = 0;
    for (int n = 0; n < 1500; ++n) {
      std::string text;
      for (size_t k = 2 + rng() % 40; k > 0; --k) text += bits[rng() % bits.size()];
      const std::vector<int32_t> whole = tokenizer->Encode(text);
      const auto parts = [&](size_t cut) {
        std::vector<int32_t> ids = tokenizer->Encode(std::string_view(text).substr(0, cut));
        const std::vector<int32_t> rest = tokenizer->Encode(std::string_view(text).substr(cut));
        ids.insert(ids.end(), rest.begin(), rest.end());
        return ids;
      };
      std::vector<bool> safe(text.size() + 1);
      for (size_t cut = SafeCut(text); cut > 0; cut = SafeCut(std::string_view(text).substr(0, cut))) {
        safe[cut] = true;
        ++cuts;
        EXPECT_EQ(parts(cut), whole) << Json(text).dump(-1, ' ', false, Json::error_handler_t::replace) << " at "
                                     << cut;
      }
      for (size_t cut = SafeWordCut(text); cut > 0; cut = SafeWordCut(std::string_view(text).substr(0, cut))) {
        ++words;
        EXPECT_EQ(parts(cut), whole) << Json(text).dump(-1, ' ', false, Json::error_handler_t::replace) << " at "
                                     << cut;
      }
      for (size_t cut = 1; cut < text.size(); ++cut)
        unlike += !safe[cut] && text[cut - 1] == '\n' && parts(cut) != whole;
    }
    EXPECT_GT(cuts, 1000);
    EXPECT_GT(words, 300);
    EXPECT_GT(unlike, 200) << "cutting after any line end would do: the test shows nothing";
  }
  std::filesystem::remove_all(folder);
}

// Tokenizers whose pieces reach over lines are not cut at all.
TEST(ChunkedIds, APrefixSpaceForbidsCuts) {
  const std::string folder = testing::TempDir() + "/penstock_chunked_prefix";
  Make(folder, kGpt2);
  std::ifstream in(folder + "/tokenizer.json");
  Json file = Json::parse(in);
  file["pre_tokenizer"]["add_prefix_space"] = true;
  std::ofstream(folder + "/tokenizer.json") << file.dump();
  EXPECT_FALSE(tokenizer::LoadTokenizer(folder)->CutsAtLines());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::data
