// How fast are texts encoded, and tokenizers learned? docs/tokenizers.md has the figures.
//   build-plan/tokenizer_bench
//     learns tokenizers of three patterns from the Python library's sources and encodes those with them, document by
//     document and as one text, on one thread. Exit status 1 when a text does not come back, or below 5 MB/s.
//   build-plan/tokenizer_bench encode TOKENIZER DOCUMENTS each|whole [IDS]
//   build-plan/tokenizer_bench train DOCUMENTS PATTERN NORMALIZER VOCABULARY THREADS
//     one measurement, printed as JSON, for bench/tokenizer_speed.py. DOCUMENTS: of each its length in bytes (u32), its
//     bytes. The ids are written to IDS: of each document how many (u32), the ids (i32).
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/corpus.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

namespace penstock {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<std::string> ReadDocuments(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<std::string> documents;
  for (size_t at = 0; at + 4 <= bytes.size();) {
    uint32_t n = 0;
    std::memcpy(&n, bytes.data() + at, sizeof(n));
    documents.push_back(bytes.substr(at + 4, n));
    at += 4 + n;
  }
  return documents;
}

std::vector<std::string> AsOne(const std::vector<std::string>& documents) {
  std::string whole;
  for (const std::string& document : documents) whole += document;
  return {whole};
}

int64_t Bytes(const std::vector<std::string>& texts) {
  int64_t bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<int64_t>(text.size());
  return bytes;
}

struct Encoded {
  double seconds = 0;
  int64_t count = 0;
  std::vector<std::vector<int32_t>> ids;
};

Encoded EncodeAll(const tokenizer::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  Encoded encoded;
  encoded.ids.reserve(texts.size());
  const double start = Now();
  for (const std::string& text : texts) encoded.ids.push_back(tokenizer.Encode(text));
  encoded.seconds = Now() - start;
  for (const auto& ids : encoded.ids) encoded.count += static_cast<int64_t>(ids.size());
  return encoded;
}

struct Trained {
  tokenizer::BpeTrainer::Result result;
  double count_seconds = 0, merge_seconds = 0;
};

Trained TrainOn(const std::vector<std::string>& texts, const tokenizer::BpeTrainOptions& options, int threads) {
  Trained trained;
  tokenizer::BpeTrainer trainer(options);
  const double start = Now();
  std::atomic<size_t> next = 0;
  const auto count = [&] {
    for (size_t i; (i = next++) < texts.size();) trainer.Count(texts[i]);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(count);
  count();
  for (std::thread& thread : others) thread.join();
  const double counted = Now();
  trained.result = trainer.Train();
  trained.count_seconds = counted - start;
  trained.merge_seconds = Now() - counted;
  return trained;
}

int MeasureEncoding(const std::vector<std::string>& words) {
  const auto tokenizer = tokenizer::LoadTokenizer(words.at(0));
  std::vector<std::string> texts = ReadDocuments(words.at(1));
  if (words.at(2) == "whole") texts = AsOne(texts);
  const Encoded encoded = EncodeAll(*tokenizer, texts);
  if (words.size() > 3) {
    std::string out;
    for (const auto& ids : encoded.ids) {
      const auto n = static_cast<uint32_t>(ids.size());
      out.append(reinterpret_cast<const char*>(&n), sizeof(n));
      out.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t));
    }
    WriteFileAtomically(words[3], out, /*overwrite=*/true);
  }
  fmt::print("{{\"seconds\": {}, \"bytes\": {}, \"ids\": {}}}\n", encoded.seconds, Bytes(texts), encoded.count);
  return 0;
}

int MeasureTraining(const std::vector<std::string>& words) {
  const std::vector<std::string> texts = ReadDocuments(words.at(0));
  const Trained trained =
      TrainOn(texts, {.vocabulary = std::stoi(words.at(3)), .pattern = words.at(1), .normalizer = words.at(2)},
              std::stoi(words.at(4)));
  fmt::print("{{\"seconds\": {}, \"count_seconds\": {}, \"merge_seconds\": {}, \"bytes\": {}, \"vocabulary\": {}}}\n",
             trained.count_seconds + trained.merge_seconds, trained.count_seconds, trained.merge_seconds, Bytes(texts),
             trained.result.vocabulary);
  return 0;
}

int MeasureAll() {
  std::vector<std::string> texts;
  for (data::Document& document : data::LoadPythonLibrary(16 << 20).documents)
    texts.push_back(std::move(document.text));
  const auto megabytes = static_cast<double>(Bytes(texts)) * 1e-6;
  const std::string folder = std::filesystem::temp_directory_path() / fmt::format("penstock-bench-{}", ::getpid());
  std::filesystem::create_directories(folder);
  bool good = true;
  for (const char* pattern : {"gpt2", "llama3", "qwen2"}) {
    const char* normalizer = std::string(pattern) == "qwen2" ? "nfc" : "none";
    const Trained trained = TrainOn(texts, {.vocabulary = 16000, .pattern = pattern, .normalizer = normalizer}, 1);
    WriteFileAtomically(folder + "/tokenizer.json", trained.result.tokenizer_json, /*overwrite=*/true);
    const auto tokenizer = tokenizer::LoadTokenizer(folder);
    fmt::print("{:7} learned {} tokens from {:.1f} MB: counting {:.2f} s, merging {:.2f} s\n", pattern,
               trained.result.vocabulary, megabytes, trained.count_seconds, trained.merge_seconds);
    for (const bool whole : {false, true}) {
      const std::vector<std::string> all = whole ? AsOne(texts) : texts;
      const Encoded encoded = EncodeAll(*tokenizer, all);
      const double rate = megabytes / encoded.seconds;
      bool back = true;
      for (size_t i = 0; tokenizer->lossless() && i < all.size(); ++i)
        back = back && tokenizer->Decode(encoded.ids[i]) == all[i];
      fmt::print("        {}: {:.1f} MB/s, {} tokens{}\n", whole ? "as one text" : "by document", rate, encoded.count,
                 back ? "" : "; THE TEXT DOES NOT COME BACK");
      good = good && back && rate > 5;
    }
  }
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}

int Main(const std::vector<std::string>& words) {
  try {
    if (words.empty()) return MeasureAll();
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (words[0] == "encode" && (rest.size() == 3 || rest.size() == 4)) return MeasureEncoding(rest);
    if (words[0] == "train" && rest.size() == 5) return MeasureTraining(rest);
    fmt::print(stderr, "usage: see bench/plan/tokenizer_bench.cc\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_bench: {}\n", error.what());
  }
  return 2;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main({argv + 1, argv + argc}); }
