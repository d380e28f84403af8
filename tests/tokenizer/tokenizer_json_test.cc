// Files of tokenizers without Python: a small one written by hand, what is refused, and a thousand damaged ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

namespace penstock::tokenizer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Folder {
  std::string path =
      testing::TempDir() + "penstock-tokenizer-" + testing::UnitTest::GetInstance()->current_test_info()->name();
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name, std::ios::binary) << text;
  }
};

const std::string& Trained() {
  static const std::string kJson = [] {
    BpeTrainer trainer({.vocabulary = 300, .special_tokens = {"<|endoftext|>", "<|user|>"}, .normalizer = "nfc"});
    for (int i = 0; i < 50; ++i)
      trainer.Count("the lower the newest, the widest \xC3\xA9t\xC3\xA9 " + std::to_string(i));
    return trainer.Train().tokenizer_json;
  }();
  return kJson;
}

std::string WhyRefused(const std::string& name) {
  try {
    LoadTokenizer(name);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Worked out by hand. Merges in order: l+o, lo+w, e+r, Ġ+low ("Ġ" spells a space).
constexpr const char* kByHand = R"({
  "added_tokens": [{"id": 9, "content": "<eos>", "special": true, "normalized": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "unk_token": "r",
    "vocab": {"l": 0, "o": 1, "w": 2, "e": 3, "r": 4, "Ġ": 5, "lo": 6, "low": 7, "er": 8, "Ġlow": 10},
    "merges": ["l o", "lo w", ["e", "r"], "Ġ low"]}})";

TEST(TokenizerJson, ByHand) {
  const Folder folder;
  folder.Write("tokenizer.json", kByHand);
  const auto tokenizer = LoadTokenizer(folder.path);
  EXPECT_EQ(tokenizer->vocabulary(), 11);
  EXPECT_EQ(tokenizer->end_of_document(), 9);
  EXPECT_FALSE(tokenizer->lossless()) << "most bytes have no token";
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(tokenizer->Encode("lower low"), (Ids{7, 8, 10}));
  EXPECT_EQ(tokenizer->Encode("  low"), (Ids{5, 10}));
  EXPECT_EQ(tokenizer->Encode("x"), (Ids{4})) << "the unknown token";
  EXPECT_EQ(tokenizer->Encode("<eos>").size(), 5u) << "text is no special token";
  EXPECT_EQ(tokenizer->EncodeWithSpecials("low<eos>low"), (Ids{7, 9, 7}));
  EXPECT_EQ(tokenizer->Decode(Ids{7, 8, 10, 9}), "lower low<eos>");
  EXPECT_THROW(tokenizer->Decode(Ids{11}), UserError);
  EXPECT_EQ(tokenizer->files().size(), 1u);
}

// Merges that spell a special token (files have them when it stood in the text they were learned from): the package
// gives the special token for plain text, here the tokens that were merged stand for it. A longer token made of it
// stays.
TEST(TokenizerJson, MergesNeverGiveASpecialToken) {
  using Ids = std::vector<int32_t>;
  json made = json::parse(R"({
    "added_tokens": [{"id": 9, "content": "END", "special": true, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "unk_token": null,
      "vocab": {"E": 0, "N": 1, "D": 2, "I": 3, "G": 4, "EN": 5, "NG": 6, "ING": 7, "x": 8, "END": 9, "ENDING": 10},
      "merges": ["E N", "EN D", "N G", "I NG", "END ING"]}})");
  const Folder folder;
  for (const bool ignore_merges : {false, true}) {
    made["model"]["ignore_merges"] = ignore_merges;
    folder.Write("tokenizer.json", made.dump());
    const auto tokenizer = LoadTokenizer(folder.path);
    EXPECT_EQ(tokenizer->Encode("END"), (Ids{5, 2}));
    EXPECT_EQ(tokenizer->Encode("xEND"), (Ids{8, 5, 2}));
    EXPECT_EQ(tokenizer->Encode("ENDING"), (Ids{10})) << "as the package has it";
    EXPECT_EQ(tokenizer->EncodeWithSpecials("ENDING"), (Ids{9, 7}));
    EXPECT_EQ(tokenizer->Encode(std::string(200, 'E') + "ND").back(), 2) << "a long piece";
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("xENDx")), "xENDx");
  }
  // No merge, but a piece that is in the vocabulary; and a special token that is spelled like a byte by chance.
  made["model"]["merges"] = {"E N"};
  made["model"]["vocab"] = {{"E", 0}, {"N", 1}, {"D", 2}, {"EN", 5}, {"\u010A", 6}, {"END", 9}, {"\n", 4}};
  made["added_tokens"].push_back({{"id", 4}, {"content", "\n"}, {"special", true}, {"normalized", false}});
  folder.Write("tokenizer.json", made.dump());
  EXPECT_EQ(LoadTokenizer(folder.path)->Encode("END\n"), (Ids{5, 2, 6}));
  EXPECT_EQ(LoadTokenizer(folder.path)->EncodeWithSpecials("END\n"), (Ids{9, 4}));
  // Characters.
  made["pre_tokenizer"] = nullptr;
  made["decoder"] = {{"type", "Fuse"}};
  made["model"]["vocab"] = {{"a", 0}, {"?", 1}, {"b", 2}, {"ab", 3}};
  made["model"]["merges"] = {"a b"};
  made["model"]["unk_token"] = "?";
  made["added_tokens"] = json::array(
      {{{"id", 0}, {"content", "a"}, {"special", true}}, {{"id", 3}, {"content", "ab"}, {"special", true}}});
  folder.Write("tokenizer.json", made.dump());
  EXPECT_EQ(LoadTokenizer(folder.path)->Encode("ab"), (Ids{1, 2})) << "a is no character of text";
  EXPECT_EQ(LoadTokenizer(folder.path)->EncodeWithSpecials("ab"), (Ids{3}));
}

// A tokenizer is lossless only if no step takes something away.
TEST(TokenizerJson, StepsThatRemoveTextAreNotLossless) {
  const Folder folder;
  json made = json::parse(Trained());
  made["normalizer"] = nullptr;
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  for (const std::string behavior : {"Isolated", "Contiguous", "MergedWithPrevious", "MergedWithNext", "Removed"}) {
    for (const json& step : {json{{"type", "Punctuation"}, {"behavior", behavior}},
                             json{{"type", "Split"}, {"pattern", {{"String", ","}}}, {"behavior", behavior}}}) {
      made["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {step, byte_level}}};
      folder.Write("tokenizer.json", made.dump());
      const auto tokenizer = LoadTokenizer(folder.path);
      EXPECT_EQ(tokenizer->lossless(), behavior != "Removed") << step;
      const std::string text = "the newest, the lowest,, ,";
      EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)) == text, tokenizer->lossless()) << step;
    }
  }
}

TEST(TokenizerJson, ASpecialTokenIsNoByte) {
  const Folder folder;
  json made = json::parse(kByHand);
  made["added_tokens"].push_back({{"id", 0}, {"content", "l"}, {"special", true}});
  folder.Write("tokenizer.json", made.dump());
  EXPECT_NE(WhyRefused(folder.path).find("'l'"), std::string::npos) << WhyRefused(folder.path);
}

TEST(TokenizerJson, Gpt2FilesAreTheSame) {
  const Folder whole, pair;
  whole.Write("tokenizer.json", kByHand);
  fs::create_directories(pair.path + "/two");
  const json model = json::parse(kByHand)["model"];
  json vocabulary = model["vocab"];
  vocabulary["<|endoftext|>"] = 9;
  WriteFileAtomically(pair.path + "/two/vocab.json", vocabulary.dump());
  WriteFileAtomically(pair.path + "/two/merges.txt", "#version: 0.2\nl o\r\nlo w\ne r\nĠ low\n");
  const auto a = LoadTokenizer(whole.path + "/../" + fs::path(pair.path).filename().string() + "/two");
  EXPECT_EQ(a->Encode("lower low  low"), (std::vector<int32_t>{7, 8, 10, 5, 10}));
  EXPECT_EQ(a->end_of_document(), 9);
  EXPECT_EQ(LoadTokenizer(pair.path + "/two/merges.txt")->Fingerprint(), a->Fingerprint());
  fs::remove(pair.path + "/two/merges.txt");
  EXPECT_NE(WhyRefused(pair.path + "/two/vocab.json").find("merges.txt"), std::string::npos);
}

// The files of a tokenizer, written anywhere, are that tokenizer.
TEST(TokenizerJson, FilesMakeItAgain) {
  const Folder first, second;
  first.Write("tokenizer.json", Trained());
  first.Write("tokenizer_config.json",
              R"({"eos_token": {"content": "<|user|>"}, "bos_token": "<|user|>", "add_bos_token": true})");
  const auto a = LoadTokenizer(first.path);
  EXPECT_EQ(a->end_of_document(), 1);
  EXPECT_EQ(a->beginning_of_text(), 1);
  fs::create_directories(second.path + "/other");
  for (const TokenizerFile& file : a->files()) WriteFileAtomically(second.path + "/other/" + file.name, file.content);
  const auto b = LoadTokenizer(second.path + "/other");
  EXPECT_EQ(a->Fingerprint(), b->Fingerprint());
  EXPECT_EQ(b->end_of_document(), 1);
  EXPECT_EQ(a->special_tokens().size(), 2u);
}

// A long text in parts has the ids of the whole, where the tokenizer says so.
TEST(TokenizerJson, CutsAtLines) {
  const Folder folder;
  folder.Write("tokenizer.json", Trained());
  const auto tokenizer = LoadTokenizer(folder.path);
  ASSERT_TRUE(tokenizer->CutsAtLines());
  uint64_t x = 3;
  const std::vector<std::string> parts = {"the", " ",  "\n", "e",     "\xCC\x81", "1",
                                          ".",   "'s", "\t", "lower", "\xFF",     "\r"};
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  int cuts = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (int n = 0; n < 12; ++n)
      text += parts[(x = x * 6364136223846793005u + 1442695040888963407u) >> 33 & 7 ? (x >> 40) % parts.size() : 2];
    std::vector<int32_t> ids;
    size_t done = 0;
    for (size_t at = 1; at + 1 < text.size(); ++at) {
      if (text[at] != '\n' || space(text[at - 1]) || space(text[at + 1])) continue;
      const auto part = tokenizer->Encode(std::string_view(text).substr(done, at + 1 - done));
      ids.insert(ids.end(), part.begin(), part.end());
      done = at + 1;
      ++cuts;
    }
    const auto part = tokenizer->Encode(std::string_view(text).substr(done));
    ids.insert(ids.end(), part.begin(), part.end());
    ASSERT_EQ(ids, tokenizer->Encode(text)) << testing::PrintToString(text);
  }
  EXPECT_GT(cuts, 300);
}

TEST(TokenizerJson, RefusedByName) {
  const Folder folder;
  const auto why = [&](const char* place, const json& value) {
    json changed = json::parse(Trained());
    changed[json::json_pointer(place)] = value;
    folder.Write("tokenizer.json", changed.dump());
    return WhyRefused(folder.path);
  };
  const std::vector<std::tuple<const char*, json, const char*>> cases = {
      {"/model/type", "Unigram", "Unigram"},
      {"/model/dropout", 0.1, "dropout"},
      {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"},
      {"/model/continuing_subword_prefix", "##", "continuing_subword_prefix"},
      {"/model/vocab", json::array(), "vocab"},
      {"/model/vocab/q", "x", "'q'"},
      {"/model/vocab/q", int64_t{1} << 40, "'q'"},
      {"/model/vocab/q", -1, "'q'"},
      {"/model/vocab/q", 0, "id 0"},
      {"/model/merges/3", "a", "merges[3]"},
      {"/model/merges/3", "a b c", "merges[3]"},
      {"/model/merges/3", "zz zz", "merges[3]"},
      {"/model/unk_token", "nowhere", "nowhere"},
      {"/normalizer", {{"type", "Nmt"}}, "Nmt"},
      {"/normalizer/type", "nfc", "nfc"},
      {"/pre_tokenizer", {{"type", "BertPreTokenizer"}}, "BertPreTokenizer"},
      {"/pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}},
       "regular expression"},
      {"/decoder", {{"type", "Fuse"}}, "ByteLevel"},
      {"/added_tokens/0/id", 1, "given twice"},
      {"/added_tokens/0/content", 7, "content"},
      {"/added_tokens", {{"a", 1}}, "added_tokens"},
  };
  for (const auto& [place, value, word] : cases) {
    const std::string message = why(place, value);
    EXPECT_NE(message.find(word), std::string::npos) << place << " = " << value << ": " << message;
    EXPECT_NE(message.find(folder.path), std::string::npos) << message;
  }
  folder.Write("tokenizer.json", "{");
  EXPECT_NE(WhyRefused(folder.path).find("no JSON"), std::string::npos);
  EXPECT_NE(WhyRefused(folder.path + "/none").find("there is no tokenizer"), std::string::npos);
  folder.Write("x.model", "not a model");
  EXPECT_NE(WhyRefused(folder.path + "/x.model").find("SentencePiece"), std::string::npos);
}

// Steps of steps of steps: the readers call themselves.
TEST(TokenizerJson, DeepNesting) {
  const Folder folder;
  for (const char* const key : {"normalizer", "pre_tokenizer", "decoder", "post_processor", "ignored"}) {
    const std::pair<std::string, const char*> kinds[] = {
        {"[", "]"},
        {R"({"type":"Sequence","normalizers":[)", "]}"},
        {R"({"type":"Sequence","pretokenizers":[)", "]}"},
        {R"({"type":"Sequence","decoders":[)", "]}"},
    };
    for (const auto& [open, close] : kinds) {
      std::string text = R"({"version":"1.0",")" + std::string(key) + "\":";
      for (int i = 0; i < 200'000; ++i) text += open;
      for (int i = 0; i < 200'000; ++i) text += close;
      folder.Write("tokenizer.json", text + "}");
      const std::string message = WhyRefused(folder.path);
      EXPECT_NE(message.find("nested deeper"), std::string::npos) << key << ": " << message.substr(0, 300);
      EXPECT_NE(message.find(folder.path), std::string::npos);
    }
  }
}

// Every damaged file is a tokenizer that works, or refused with a message; nothing else (run under a sanitizer too).
TEST(TokenizerJson, Mutations) {
  const Folder folder;
  uint64_t x = 11;
  const auto next = [&](uint64_t n) { return (x = x * 6364136223846793005u + 1442695040888963407u) >> 33 % n; };
  int refused = 0, loaded = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = Trained();
    for (uint64_t n = 1 + next(3) % 3; n > 0; --n) {
      const size_t at = next(64) % text.size();
      switch (next(7) % 5) {
        case 0:
          text[at] = static_cast<char>(next(5));
          break;
        case 1:
          text.erase(at, next(9) % 40);
          break;
        case 2:
          text.resize(at);
          text += '}';
          break;
        case 3:
          text.insert(at, text.substr(next(3) % text.size(), next(4) % 30));
          break;
        default: {  // another number or word at the place of one
          const size_t digit = text.find_first_of("0123456789tfn", at);
          if (digit != std::string::npos) text[digit] = "0123456789tfn\"[{"[next(3) % 16];
        }
      }
    }
    folder.Write("tokenizer.json", text);
    try {
      const auto tokenizer = LoadTokenizer(folder.path);
      for (const int32_t id : tokenizer->Encode("the widest \xC3\xA9\xFF <|endoftext|>"))
        ASSERT_LT(id, tokenizer->vocabulary());
      tokenizer->Decode(tokenizer->EncodeWithSpecials("a<|user|>"));
      ++loaded;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(loaded, 10);
}

}  // namespace
}  // namespace penstock::tokenizer
