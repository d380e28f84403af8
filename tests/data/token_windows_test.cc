#include "data/token_windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/file_lock.h"
#include "data/batches.h"
#include "data/config.h"
#include "data/token_sources.h"
#include "data/tokenize.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

class TokenWindowsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/penstock_windows_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Documents of given numbers of tokens, without their end (id 0); ids count up from 1 over the file.
  std::shared_ptr<const TokenFile> File(const std::vector<int64_t>& lengths, const std::string& name = "a.tokens",
                                        int32_t vocabulary = 1'000'000) {
    std::vector<std::vector<int32_t>> documents;
    int32_t id = 1;
    for (const int64_t length : lengths) {
      documents.emplace_back();
      for (int64_t t = 0; t < length; ++t) documents.back().push_back(id++);
    }
    const std::string path = folder_ + "/" + name;
    WriteTokenFile(path, {.tokenizer = "bytes", .fingerprint = "bytes", .vocabulary = vocabulary}, documents, true);
    return std::make_shared<const TokenFile>(path);
  }
  std::string Fault(const std::function<void()>& action) {
    try {
      action();
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  std::string folder_;
};

TEST_F(TokenWindowsTest, AcrossDocumentsTheyAreTheWindowsOfTheStream) {
  const auto file = File({3, 5, 1, 12, 2});
  TokenStream stream(file->info().vocabulary);
  for (int64_t i = 0; i < file->tokens(); ++i) stream.Append((*file)[i]);
  for (int64_t sequence = 1; sequence < 30; ++sequence) {
    for (const bool keep : {false, true}) {
      const WindowOptions options{sequence, sequence / 3, keep};
      if (!keep && sequence > 27) continue;
      const TextWindows expected(stream, options);
      const TokenWindows windows(file, options, Packing::kCross);
      ASSERT_EQ(windows.size(), expected.size());
      for (int64_t i = 0; i < windows.size(); ++i) {
        EXPECT_EQ(windows.Get(i).tokens, expected.Get(i).tokens);
        EXPECT_EQ(windows.Get(i).labels, expected.Get(i).labels);
        EXPECT_EQ(windows.Length(i), expected.Length(i));
        EXPECT_EQ(windows.ValidTokens(i), expected.ValidTokens(i));
      }
    }
  }
}

// Every label inside a document is predicted once, none is of another document, and the end of a document is predicted
// but predicts nothing. Many documents, so that the index has several entries.
TEST_F(TokenWindowsTest, WithinDocumentsNothingCrosses) {
  std::mt19937_64 rng(5);
  std::vector<int64_t> lengths(1000);
  for (int64_t& length : lengths) length = static_cast<int64_t>(rng() % 40);
  const auto file = File(lengths);
  std::vector<int64_t> document_of(static_cast<size_t>(file->tokens()) + 1);
  std::map<int32_t, int64_t> place;  // of ids other than the end
  for (int64_t d = 0; d < file->documents(); ++d)
    for (int64_t t = file->Document(d).begin; t < file->Document(d).end; ++t) {
      document_of[static_cast<size_t>(t)] = d;
      if ((*file)[t] != 0) place[(*file)[t]] = t;
    }
  for (const int64_t sequence : {1, 7, 16, 50}) {
    const TokenWindows windows(file, {.sequence = sequence}, Packing::kWithin);
    int64_t labels = 0;
    std::set<int64_t> seen;
    for (int64_t i = 0; i < windows.size(); ++i) {
      const Sample sample = windows.Get(i);
      ASSERT_EQ(static_cast<int64_t>(sample.tokens.size()), windows.Length(i));
      ASSERT_LE(windows.Length(i), sequence);
      for (size_t t = 0; t < sample.tokens.size(); ++t) {
        const int64_t at = place.at(sample.tokens[t]);  // never the end of a document
        EXPECT_TRUE(seen.insert(at).second);
        EXPECT_EQ(sample.labels[t], (*file)[at + 1]);
        EXPECT_EQ(document_of[static_cast<size_t>(at)], document_of[static_cast<size_t>(at) + 1]);
        ++labels;
      }
    }
    EXPECT_EQ(labels, file->tokens() - file->documents());
  }
  const TokenWindows full(file, {.sequence = 16, .keep_short_window = false}, Packing::kWithin);
  for (int64_t i = 0; i < full.size(); ++i) EXPECT_EQ(full.Length(i), 16);
  const TokenWindows masked(file, {.sequence = 16, .masked_prefix = 5}, Packing::kWithin);
  for (int64_t i = 0; i < masked.size(); ++i) EXPECT_GT(masked.ValidTokens(i), 0);
  EXPECT_THROW(TokenWindows(file, {.sequence = 64, .keep_short_window = false}, Packing::kWithin), UserError);
}

TEST_F(TokenWindowsTest, FingerprintsTellDataApart) {
  const auto file = File({30, 30});
  std::set<std::string> all;
  all.insert(TokenWindows(file, {.sequence = 8}, Packing::kCross).Fingerprint());
  all.insert(TokenWindows(file, {.sequence = 8}, Packing::kWithin).Fingerprint());
  all.insert(TokenWindows(file, {.sequence = 9}, Packing::kCross).Fingerprint());
  all.insert(TokenWindows(File({30, 29, 1}, "b.tokens"), {.sequence = 8}, Packing::kCross).Fingerprint());
  EXPECT_EQ(all.size(), 4u);
}

TEST_F(TokenWindowsTest, TheIndexIsKeptAndBuiltAnewForAnotherFile) {
  std::ostringstream log;
  double now = 0;
  const ProgressSink sink{.out = &log, .clock = [&] { return now += 0.6; }};
  const auto file = File(std::vector<int64_t>(20'000, 7));
  EXPECT_FALSE(CountTokens(*file, sink)->from_file());
  EXPECT_TRUE(CountTokens(*file, sink)->from_file());
  const TokenWindows first(file, {.sequence = 4}, Packing::kWithin, sink);
  EXPECT_NE(log.str().find("index of '"), std::string::npos);
  log.str("");
  const TokenWindows second(file, {.sequence = 4}, Packing::kWithin, sink);
  EXPECT_EQ(log.str(), "");
  EXPECT_EQ(first.size(), second.size());
  // Damage to the index, and another file of the same name: built again.
  const std::string path = file->path() + ".index-windows-4-0-1";
  std::string bytes = ReadFile(path);
  bytes[100] = static_cast<char>(bytes[100] + 1);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(TokenWindows(file, {.sequence = 4}, Packing::kWithin).size(), first.size());
  std::ofstream(path, std::ios::binary) << bytes.substr(0, 70);
  EXPECT_EQ(TokenWindows(file, {.sequence = 4}, Packing::kWithin).size(), first.size());
  const auto other = File(std::vector<int64_t>(20'000, 8));
  EXPECT_FALSE(CountTokens(*other, sink)->from_file());
  EXPECT_GT(TokenWindows(other, {.sequence = 4}, Packing::kWithin).Length(1), 3);
}

TEST_F(TokenWindowsTest, WhoeverWaitsSaysForWhom) {
  const auto file = File({10, 10});
  auto lock = FileLock::Try(file->path() + ".index.lock");
  ASSERT_NE(lock, nullptr);
  std::ostringstream log;
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1300));
    lock.reset();
  });
  CountTokens(*file, {.out = &log});
  holder.join();
  const std::string text = log.str();
  EXPECT_EQ(text.rfind("waiting for process ", 0), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

// Where nothing can be written the index is there all the same.
TEST(IndexFile, InAFolderThatCannotBeWritten) {
  const auto index = IndexFile::Open("/proc/penstock.index", {}, {}, [] { return std::vector<int64_t>{1, 2, 3}; });
  EXPECT_FALSE(index->from_file());
  ASSERT_EQ(index->values().size(), 3u);
  EXPECT_EQ(index->values()[2], 3);
}

TEST_F(TokenWindowsTest, ADamagedFileIsRefusedBeforeTraining) {
  const auto file = File({100, 100});
  const std::string path = file->path();
  std::string bytes = ReadFile(path);
  bytes[200] = static_cast<char>(bytes[200] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  DataConfig config;
  config.source = "tokens";
  config.path = path;
  config.sequence = 8;
  EXPECT_NE(Fault([&] { LoadTextData(config); }).find("another hash: the file is damaged"), std::string::npos);
}

class MixtureTest : public TokenWindowsTest {
 protected:
  // Three sources of very different sizes; sample j of source s is {1000 s + j}.
  MixtureDataset Make(std::vector<double> weights, uint64_t seed, bool shuffle = true) {
    std::vector<MixtureDataset::Source> sources;
    const std::vector<int64_t> sizes = {700, 40, 3};
    for (size_t s = 0; s < weights.size(); ++s) {
      std::vector<Sample> samples;
      for (int64_t j = 0; j < sizes[s]; ++j) {
        const auto id = static_cast<int32_t>(1000 * s) + static_cast<int32_t>(j);
        samples.push_back({{id}, {id}});
      }
      sources.push_back({"s" + std::to_string(s), std::make_shared<ListDataset>(samples), weights[s]});
    }
    return {sources, seed, shuffle};
  }
};

TEST_F(MixtureTest, ProportionsAreTheWeights) {
  const MixtureDataset mixture = Make({2, 1, 1}, 3);
  std::vector<int64_t> count(3);
  for (int64_t i = 0; i < 2 * MixtureDataset::kBlock; ++i) {
    ++count[static_cast<size_t>(mixture.Find(i).source)];
    if (i + 1 == 1000 || i + 1 == 4000) {  // and nearly so at any moment
      for (size_t s = 0; s < 3; ++s)
        EXPECT_NEAR(static_cast<double>(count[s]), static_cast<double>(i + 1) * (s == 0 ? 0.5 : 0.25), 80) << i;
    }
  }
  EXPECT_EQ(count, (std::vector<int64_t>{10'000, 5000, 5000}));
}

// A source is gone through completely before it comes again, in another order.
TEST_F(MixtureTest, EverySampleOfASourceComesOnceARound) {
  const MixtureDataset mixture = Make({1, 1, 1}, 3);
  std::vector<std::map<int64_t, std::vector<int64_t>>> rounds(3);
  for (int64_t i = 0; i < 5000; ++i) {
    const MixtureDataset::Place place = mixture.Find(i);
    rounds[static_cast<size_t>(place.source)][place.round].push_back(place.sample);
    EXPECT_EQ(mixture.Get(i).tokens[0], 1000 * place.source + place.sample);
  }
  // Within a block a source's numbers come in the order of slots, not of i: sets count.
  for (const auto& [round, samples] : rounds[2])
    EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), samples.size());
  for (int64_t i = 5000; i < MixtureDataset::kBlock; ++i) {
    const MixtureDataset::Place place = mixture.Find(i);
    rounds[static_cast<size_t>(place.source)][place.round].push_back(place.sample);
  }
  for (size_t s = 0; s < 3; ++s) {
    const size_t size = s == 0 ? 700 : s == 1 ? 40 : 3;
    EXPECT_GT(rounds[s].size(), 4u);
    for (const auto& [round, samples] : rounds[s]) {
      EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), samples.size());
      EXPECT_TRUE(samples.size() == size || round + 1 == static_cast<int64_t>(rounds[s].size()));
    }
  }
}

TEST_F(MixtureTest, WithoutShuffleABlockHasTheNextSamples) {
  const MixtureDataset mixture = Make({98, 1, 1}, 3, /*shuffle=*/false);
  for (int64_t block = 0; block < 3; ++block) {
    std::multiset<int64_t> seen, expected;
    for (int64_t i = 0; i < MixtureDataset::kBlock; ++i) {
      const MixtureDataset::Place place = mixture.Find(block * MixtureDataset::kBlock + i);
      if (place.source == 1) seen.insert(place.sample);
    }
    for (int64_t k = 0; k < 100; ++k) expected.insert((block * 100 + k) % 40);
    EXPECT_EQ(seen, expected);
  }
}

TEST_F(MixtureTest, GoldenOrder) {
  const MixtureDataset mixture = Make({2, 1, 1}, 42);
  std::string order;
  for (const int64_t i : {0, 1, 2, 3, 4, 5, 9'999, 10'000, 10'001, 123'456'789})
    order += std::to_string(mixture.Get(i).tokens[0]) + " ";
  EXPECT_EQ(order, "552 558 548 2000 585 43 617 1002 2000 2000 ");
  EXPECT_NE(mixture.Fingerprint(), Make({2, 1, 1}, 43).Fingerprint());
  EXPECT_NE(mixture.Fingerprint(), Make({3, 1, 1}, 42).Fingerprint());
  EXPECT_NE(mixture.Fingerprint(), Make({2, 1, 1}, 42, false).Fingerprint());
}

// Case E2: the order of samples knows nothing of ranks. Batches of 16 cut in micro-batches for 1, 2, 4 or 8 ranks hold
// the same samples in the same order, from any step on.
TEST_F(MixtureTest, TheOrderIsThatOfAnyNumberOfRanks) {
  const auto mixture = std::make_shared<MixtureDataset>(Make({2, 1, 1}, 7));
  std::vector<std::vector<int32_t>> expected;
  for (const int64_t ranks : {1, 2, 4, 8}) {
    const Batches batches(mixture, {.batch = 16, .micro_batch = 16 / ranks, .seed = 7});
    for (int64_t step = 0; step < 300; step += 7) {
      std::vector<int32_t> tokens;
      for (int32_t j = 0; j < batches.micro_batches(); ++j) {
        const MicroBatch micro = batches.Materialize(step, j);
        tokens.insert(tokens.end(), micro.tokens.begin(), micro.tokens.end());
      }
      if (ranks == 1) expected.push_back(tokens);
      EXPECT_EQ(tokens, expected[static_cast<size_t>(step / 7)]);
    }
  }
}

TEST_F(MixtureTest, ImpossibleWeightsAreNamed) {
  EXPECT_NE(Fault([&] { Make({1e6, 1}, 1); }).find("source 's1': weight 1 of 1000001 in all"), std::string::npos);
  EXPECT_THROW(Make({1, 0}, 1), UserError);
  EXPECT_EQ(ParseTokenSource("a=b=0.5").path, "a=b");
  EXPECT_EQ(ParseTokenSource("a").weight, 1);
  for (const char* bad : {"a=", "a=x", "a=-1", "a=0", "a=nan", "a=inf", "=1", "a=1x"})
    EXPECT_THROW(ParseTokenSource(bad), UserError) << bad;
}

TEST_F(TokenWindowsTest, FromTextToTrainingSamples) {
  fs::create_directories(folder_ + "/text");
  std::string lines;
  for (int i = 0; i < 500; ++i) lines += R"({"text": "document )" + std::to_string(i) + "\"}\n";
  std::ofstream(folder_ + "/text/a.jsonl") << lines;
  TokenizeOptions options;
  options.inputs = {folder_ + "/text"};
  options.out = folder_ + "/tokens";
  options.validation = 0.1;
  Tokenize(options, tokenizer::ByteTokenizer());
  DataConfig config;
  config.source = "tokens";
  config.path = options.out;
  config.sequence = 10;
  const TextData data = LoadTextData(config);
  EXPECT_EQ(VocabularyOf(config), 256);
  EXPECT_EQ(data.tokenizer->name(), "bytes");
  ASSERT_NE(data.validation, nullptr);
  EXPECT_GT(data.validation->size(), 20);
  EXPECT_GT(data.unigram_entropy, 1);
  EXPECT_LT(data.unigram_entropy, std::log(256));
  EXPECT_EQ(data.tokenizer->Decode(data.train->Get(0).tokens), "document 0");
  config.packing = Packing::kWithin;
  EXPECT_EQ(LoadTextData(config).train->Length(0), 10);
  config.path.clear();
  config.sources = {options.out + "=3", folder_ + "/tokens/validation.tokens=1"};
  const TextData mixed = LoadTextData(config, 5);
  EXPECT_TRUE(mixed.train->endless());
  File({5}, "other.tokens", 300);
  config.sources.push_back(folder_ + "/other.tokens");
  EXPECT_NE(Fault([&] { LoadTextData(config); }).find("which is not the same one"), std::string::npos);
  config.sources = {folder_ + "/text"};
  EXPECT_NE(Fault([&] { LoadTextData(config); }).find("has no train.tokens"), std::string::npos);
}

TEST(DataConfigTokens, KeysWithoutEffectAreRefused) {
  const auto fault = [](const std::string& toml) -> std::string {
    DataConfig data;
    config::Config config;
    config.Add("data", [&](config::Section& s) { data.Declare(s); });
    try {
      config.LoadText("[data]\n" + toml, "x.toml");
      config.Finish();
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("source = 'tokens'\npath = 'x'\npacking = 'within'\n"), "");
  EXPECT_EQ(fault("source = 'tokens'\nsources = ['x=1', 'y=2']\n"), "");
  EXPECT_NE(fault("source = 'tokens'\n"), "");
  EXPECT_NE(fault("source = 'tokens'\npath = 'x'\nsources = ['x=1']\n"), "");
  EXPECT_NE(fault("source = 'tokens'\npath = 'x'\nvalidation_fraction = 0.1\n"), "");
  EXPECT_NE(fault("source = 'tokens'\nsources = ['x']\nlast_batch = 'drop'\n"), "");
  EXPECT_NE(fault("packing = 'within'\n"), "");
  EXPECT_EQ(fault("validation_fraction = 0.1\n"), "");
}

}  // namespace
}  // namespace penstock::data
