#include "tokenizer/train_bpe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "reference.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {
namespace {

std::shared_ptr<const Tokenizer> Load(const std::string& json) {
  const std::string folder = testing::TempDir() + "penstock-trained";
  std::filesystem::create_directories(folder);
  WriteFileAtomically(folder + "/tokenizer.json", json, true);
  return LoadTokenizer(folder);
}

std::vector<std::pair<std::string, std::string>> Merges(const std::string& json) {
  std::vector<std::pair<std::string, std::string>> merges;
  const auto parsed = nlohmann::json::parse(json);
  for (const auto& merge : parsed["model"]["merges"]) merges.emplace_back(merge[0], merge[1]);
  return merges;
}

// Worked out by hand: "low" 5, "lower" 2, "newest" 6, "widest" 3 (the example of Sennrich et al. 2016, without their
// mark for the end of a word).
TEST(TrainBpe, SmallExample) {
  BpeTrainer trainer({.vocabulary = 256 + 5, .special_tokens = {}});
  for (const auto& [word, count] :
       std::vector<std::pair<std::string, int>>{{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}})
    for (int i = 0; i < count; ++i) trainer.Count(word);
  const BpeTrainer::Result result = trainer.Train();
  EXPECT_EQ(result.pieces, 16);
  EXPECT_EQ(result.distinct_pieces, 4);
  EXPECT_EQ(result.vocabulary, 261);
  // es 9 and st 9 (e before s); then est 9; lo 7; low 7; and of ne, ew, we-st, all 6, ew has the lower ids.
  EXPECT_EQ(Merges(result.tokenizer_json), (std::vector<std::pair<std::string, std::string>>{
                                               {"e", "s"}, {"es", "t"}, {"l", "o"}, {"lo", "w"}, {"e", "w"}}));
  EXPECT_EQ(result.last_frequency, 6);
}

TEST(TrainBpe, RefusesWhatCannotBe) {
  EXPECT_THROW(BpeTrainer({.vocabulary = 256}), UserError);
  EXPECT_THROW(BpeTrainer({.special_tokens = {"<a>", "<a>"}}), UserError);
  EXPECT_THROW(BpeTrainer({.special_tokens = {""}}), UserError);
  EXPECT_THROW(BpeTrainer({.special_tokens = {"E"}}), UserError) << "the file spells a byte like that";
  EXPECT_THROW(BpeTrainer({.special_tokens = {"\xC4\xA0"}}), UserError) << "and the space like this";
  EXPECT_THROW(BpeTrainer({.pattern = "(unclosed"}), UserError);
  EXPECT_THROW(BpeTrainer({.normalizer = "nfx"}), UserError);
}

// A special token that stood in the text was learned as a word, and text became its id.
TEST(TrainBpe, NoMergeSpellsASpecialToken) {
  // The third is spelled in the file as the bytes " END" would be.
  const std::vector<std::string> specials = {"END", "<s>",
                                             "\xC4\xA0"
                                             "END",
                                             "\n", " END"};
  BpeTrainer trainer({.vocabulary = 400, .special_tokens = specials});
  std::string text;
  for (int i = 0; i < 50; ++i)
    text +=
        "foo\nEND\nbar END ENDING <s> \xC4\xA0"
        "END x<s>y\n";
  trainer.Count(text);
  const std::string made = trainer.Train().tokenizer_json;
  const auto parsed = nlohmann::json::parse(made);
  EXPECT_EQ(parsed["model"]["vocab"]["END"], 0);
  EXPECT_EQ(parsed["model"]["vocab"]["\xC4\xA0"
                                     "END"],
            2);
  for (const auto& [left, right] : Merges(made))
    for (const std::string& special : specials) EXPECT_NE(left + right, special);
  const auto tokenizer = Load(made);
  const std::vector<int32_t> ids = tokenizer->Encode(text);
  for (const int32_t id : ids) ASSERT_GE(id, 5);
  EXPECT_EQ(tokenizer->Decode(ids), text);
  EXPECT_EQ(tokenizer->EncodeWithSpecials("END"), (std::vector<int32_t>{0}));
  // Where text has no special token in it, the merges are those without special tokens.
  BpeTrainer with({.vocabulary = 261}), without({.vocabulary = 260, .special_tokens = {}});
  for (BpeTrainer* one : {&with, &without}) one->Count("the lower the lowest the slow");
  EXPECT_EQ(Merges(with.Train().tokenizer_json), Merges(without.Train().tokenizer_json));
}

// What comes out depends neither on the order of the texts nor on threads; and it encodes any bytes.
TEST(TrainBpe, SameWithManyThreads) {
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i)
    texts.push_back("the " + std::to_string(i * i % 97) + " quick br\xC3\xB6wn foxes\n\n  jump\xFF" +
                    std::string(i % 7, 'x'));
  BpeTrainer one({.vocabulary = 400}), many({.vocabulary = 400});
  for (const std::string& text : texts) one.Count(text);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < texts.size(); i += 4) many.Count(texts[texts.size() - 1 - i]);
    });
  for (std::thread& thread : threads) thread.join();
  const std::string json = one.Train().tokenizer_json;
  EXPECT_EQ(json, many.Train().tokenizer_json);
  const auto tokenizer = Load(json);
  EXPECT_TRUE(tokenizer->lossless());
  EXPECT_TRUE(tokenizer->CutsAtLines());
  EXPECT_EQ(tokenizer->end_of_document(), 0);
  for (const std::string& text : texts) {
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
    EXPECT_LT(tokenizer->Encode(text).size(), text.size() / 2);
  }
}

// The same merges, in the same order, as the package `tokenizers` learns.
TEST(TrainBpe, SameMergesAsTheReference) {
  PENSTOCK_NEEDS_REFERENCE();
  const std::string folder = testing::TempDir() + "penstock-train-reference";
  std::filesystem::create_directories(folder);
  const std::string out = RunReference(R"(
import glob, json, os, sys, sysconfig
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
folder = sys.argv[1]
paths = sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))[:60]
texts = [open(p, encoding="utf-8", errors="ignore", newline="").read()[:20000] for p in paths]
texts += ["日本語 " * 30 + "naïve café \U0001f600\U0001f600 résumé " * 20]
with open(folder + "/texts", "wb") as file:
    for text in texts:
        data = text.encode()
        file.write(len(data).to_bytes(4, "little") + data)
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
    vocab_size=4000, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save(folder + "/tokenizer.json")
print(len(texts))
)",
                                       "'" + folder + "'");
  ASSERT_FALSE(HasFailure());
  BpeTrainer trainer({.vocabulary = 4000});
  const std::string texts = ReadFile(folder + "/texts");
  for (size_t at = 0; at < texts.size();) {
    uint32_t n = 0;
    std::memcpy(&n, texts.data() + at, 4);
    trainer.Count(std::string_view(texts).substr(at + 4, n));
    at += 4 + n;
  }
  const std::string ours = trainer.Train().tokenizer_json, reference = ReadFile(folder + "/tokenizer.json");
  const auto a = Merges(ours), b = Merges(reference);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(a[i], b[i]) << i;
  EXPECT_EQ(nlohmann::json::parse(ours)["model"]["vocab"], nlohmann::json::parse(reference)["model"]["vocab"]);
  std::cout << a.size() << " merges are those of the reference\n";
}

}  // namespace
}  // namespace penstock::tokenizer
