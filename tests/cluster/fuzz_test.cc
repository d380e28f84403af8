// Random mutations of a valid file: whatever comes, the answer is a cluster that can be used and printed, or a
// UserError.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "cluster/equal.h"
#include "cluster/example.h"
#include "cluster/read.h"

namespace penstock::cluster {
namespace {

constexpr std::string_view kPieces[] = {
    "[",          "]",      "[[",    "]]",       "{",          "}",         "=",
    ".",          ",",      "\"",    "'",        "#",          "\n",        "0",
    "-1",         "1e999",  "nan",   "inf",      "1e-320",     "true",      "16777216",
    "99999999",   "[]",     "{}",    "[[1, 1]]", "1979-05-27", "\xff",      "source",
    "sources",    "layout", "count", "device",   "[[device]]", "[[level]]", "[[override]]",
    "\"80 GiB\"",
};

std::string Mutated(std::mt19937& random) {
  std::string text(kExample);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  const size_t changes = 1 + below(3);
  for (size_t i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = below(text.size());
    const size_t line = text.rfind('\n', at) + 1;  // of npos: 0
    const size_t line_end = std::min(text.find('\n', at), text.size() - 1) + 1;
    switch (below(7)) {
      case 0:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 1:
        text.erase(at, 1 + below(10));
        break;
      case 2:
        text[at] = static_cast<char>(below(256));
        break;
      case 3:
        if (line < line_end) text.erase(line, line_end - line);
        break;
      case 4:
        if (line < line_end) text.insert(below(text.size()), text.substr(line, line_end - line));
        break;
      case 5: {  // another value
        const size_t equals = text.find('=', line);
        if (equals < line_end) text.replace(equals + 1, line_end - equals - 2, kPieces[below(std::size(kPieces))]);
        break;
      }
      case 6:
        text[at] = "0123456789"[below(10)];
        break;
    }
  }
  return text;
}

// How many of the mutations were still valid.
int Fuzz(int count, unsigned seed) {
  std::mt19937 random(seed);
  int valid = 0;
  for (int i = 0; i < count; ++i) {
    const std::string text = Mutated(random);
    SCOPED_TRACE(text);
    try {
      const Cluster cluster = ParseCluster(text, "fuzz");
      ++valid;
      const int64_t last = cluster.num_devices() - 1;
      EXPECT_GT(cluster.device(last).memory_bytes, 0);
      EXPECT_GE(cluster.LinkBetween(0, last).Seconds(1e6), 0);
      ExpectEqual(ParseCluster(PrintCluster(cluster), "printed"), cluster);
    } catch (const UserError& error) {
      EXPECT_STRNE(error.what(), "");
    }
    if (testing::Test::HasFailure()) break;
  }
  return valid;
}

TEST(ClusterFuzz, MutationsAreReadOrRefused) {
  const int valid = Fuzz(4000, 1);
  EXPECT_GT(valid, 200);  // else the mutations test only the TOML reader
  EXPECT_LT(valid, 3800);
}

TEST(LongClusterFuzz, MutationsAreReadOrRefused) { EXPECT_GT(Fuzz(200'000, 2), 10'000); }

}  // namespace
}  // namespace penstock::cluster
