// The same ids as the packages `tokenizers` and `sentencepiece`, on texts of many scripts, programs, white space and
// special tokens; and back to the same text. make_reference.py makes the tokenizers, texts and expected ids.
#include "reference.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "base/utf8.h"
#include "paths.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {
namespace {

// Records of a length (u32) and so many items of `Item`.
template <typename Item>
std::vector<std::vector<Item>> ReadLists(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<std::vector<Item>> lists;
  for (size_t at = 0; at < bytes.size();) {
    uint32_t n = 0;
    std::memcpy(&n, bytes.data() + at, sizeof(n));
    at += sizeof(n);
    lists.emplace_back(n);
    std::memcpy(lists.back().data(), bytes.data() + at, n * sizeof(Item));
    at += n * sizeof(Item);
  }
  return lists;
}

std::string Text(const std::vector<char>& bytes) { return {bytes.begin(), bytes.end()}; }

struct Compared {
  int64_t documents = 0, bytes = 0, ids = 0, ties = 0;
};

// Are the two the same text in equally good pieces? Of a unigram model (Kudo 2018) the segmentation with the highest
// sum of scores is sought, and versions of its library take different ones of several that are equally good.
bool EquallyGood(const Tokenizer& tokenizer, const std::vector<float>& scores, const std::vector<int32_t>& a,
                 const std::vector<int32_t>& b) {
  const auto sum = [&](const std::vector<int32_t>& ids) {
    double total = 0;
    for (const int32_t id : ids) total += scores.at(static_cast<size_t>(id));
    return total;
  };
  return tokenizer.Decode(a) == tokenizer.Decode(b) && std::abs(sum(a) - sum(b)) < 1e-6 * std::abs(sum(a));
}

void CompareFolder(const std::string& folder, const std::vector<std::vector<char>>& documents, Compared& compared) {
  const auto tokenizer = LoadTokenizer(folder);
  const auto ids = ReadLists<int32_t>(folder + "/ids");
  const auto decoded = ReadLists<char>(folder + "/decoded");
  ASSERT_EQ(ids.size(), documents.size());
  ASSERT_EQ(decoded.size(), documents.size());
  const bool has_specials = std::filesystem::exists(folder + "/specials");
  const auto specials = has_specials ? ReadLists<int32_t>(folder + "/specials") : std::vector<std::vector<int32_t>>();
  const std::vector<std::vector<float>> scores =
      std::filesystem::exists(folder + "/scores") && folder.ends_with("unigram") ? ReadLists<float>(folder + "/scores")
                                                                                 : std::vector<std::vector<float>>();
  int wrong = 0;
  for (size_t i = 0; i < documents.size() && wrong < 5; ++i) {
    const std::string text = Text(documents[i]);
    const std::vector<int32_t> ours = tokenizer->Encode(text);
    if (!scores.empty() && ours != ids[i] && EquallyGood(*tokenizer, scores[0], ours, ids[i])) {
      ++compared.ties;
    } else if (ours != ids[i]) {
      ++wrong;
      size_t at = 0;
      while (at < ours.size() && at < ids[i].size() && ours[at] == ids[i][at]) ++at;
      const std::string before = tokenizer->Decode(std::span(ours).first(at));
      ADD_FAILURE() << folder << ", document " << i << ": ids differ from number " << at << " of " << ids[i].size()
                    << ", after: ..." << before.substr(before.size() - std::min<size_t>(before.size(), 40))
                    << "\nours: "
                    << testing::PrintToString(
                           std::vector<int32_t>(ours.begin() + at, ours.begin() + std::min(at + 8, ours.size())))
                    << "\nreference: "
                    << testing::PrintToString(
                           std::vector<int32_t>(ids[i].begin() + at, ids[i].begin() + std::min(at + 8, ids[i].size())));
    }
    // Where the reference gives the text back, so do we; we never put U+FFFD for bytes.
    if (const std::string back = tokenizer->Decode(ours); IsUtf8(back) && back != Text(decoded[i])) {
      ++wrong;
      ADD_FAILURE() << folder << ", document " << i << ": decoded to other text\nours: " << back.substr(0, 300)
                    << "\nreference: " << Text(decoded[i]).substr(0, 300);
    }
    if (tokenizer->lossless()) {
      EXPECT_EQ(tokenizer->Decode(ours), text) << folder << ", document " << i;
    }
    if (has_specials) {
      EXPECT_EQ(tokenizer->EncodeWithSpecials(text), specials[i]) << folder << ", document " << i;
    }
    compared.bytes += static_cast<int64_t>(text.size());
    compared.ids += static_cast<int64_t>(ours.size());
    ++compared.documents;
  }
}

void CompareAll(const char* megabytes) {
  const std::string folder = testing::TempDir() + "penstock-tokenizers-" + megabytes;
  std::filesystem::remove_all(folder);
  const std::string script = SourceFolder() + "/tests/tokenizer/make_reference.py";
  const std::string said = RunReference(ReadFile(script), "'" + folder + "' " + megabytes);
  ASSERT_FALSE(testing::Test::HasFailure()) << said;
  const auto documents = ReadLists<char>(folder + "/documents");
  Compared all;
  int tokenizers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    ++tokenizers;
    CompareFolder(entry.path().string(), documents, all);
  }
  EXPECT_EQ(tokenizers, 12);
  std::cout << said << tokenizers << " tokenizers, " << all.documents << " documents, " << all.bytes << " bytes, "
            << all.ids << " ids compared; " << all.ties << " documents in other pieces that are as good\n";
  EXPECT_LT(all.ties, all.documents / 50);
  std::filesystem::remove_all(folder);
}

TEST(TokenizerReference, SameIdsAndText) {
  PENSTOCK_NEEDS_REFERENCE();
  CompareAll("0.3");
}

TEST(LongTokenizerReference, SameIdsOnElevenMegabytes) {
  PENSTOCK_NEEDS_REFERENCE();
  CompareAll("11");
}

}  // namespace
}  // namespace penstock::tokenizer
