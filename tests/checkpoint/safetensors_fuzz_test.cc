// Deterministic mutations of valid headers: the parser either accepts, and then every promise of the header holds, or
// throws UserError. Nothing else, under the sanitizers too.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "base/error.h"
#include "checkpoint/safetensors_header.h"

namespace penstock::checkpoint {
namespace {

const char* const kTokens[] = {"{",
                               "}",
                               "[",
                               "]",
                               ",",
                               ":",
                               "\"",
                               "0",
                               "-1",
                               "1e3",
                               "null",
                               "true",
                               "\"a\"",
                               "\\",
                               "\xff",
                               "\\u0000",
                               "\"__metadata__\"",
                               "[[[[",
                               "{\"a\":",
                               "4",
                               "8",
                               "\"F32\"",
                               "\"dtype\"",
                               "\"shape\"",
                               "\"data_offsets\"",
                               "9223372036854775807",
                               "18446744073709551615",
                               "18446744073709551616",
                               "[0,0]",
                               "[4,0]"};

std::string Mutate(std::string text, std::mt19937_64& rng) {
  const int edits = 1 + static_cast<int>(rng() % 4);
  for (int i = 0; i < edits; ++i) {
    const size_t at = text.empty() ? 0 : rng() % text.size();
    switch (rng() % 6) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(rng());
        break;
      case 1:
        text.erase(at, 1 + rng() % 8);
        break;
      case 2:
        text.insert(at, kTokens[rng() % std::size(kTokens)]);
        break;
      case 3:
        text.insert(at, text.substr(text.empty() ? 0 : rng() % text.size(), rng() % 64));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:  // another digit: lengths, dimensions and offsets that nearly fit
        for (size_t k = at; k < text.size(); ++k)
          if (text[k] >= '0' && text[k] <= '9') {
            text[k] = static_cast<char>('0' + rng() % 10);
            break;
          }
        break;
    }
  }
  return text;
}

// What a reader relies on.
void CheckPromises(const SafetensorsHeader& header, uint64_t file_bytes) {
  ASSERT_EQ(header.data_start + header.data_bytes, file_bytes);
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    ASSERT_EQ(entry.begin, at);
    ASSERT_EQ(entry.end - entry.begin, static_cast<uint64_t>(entry.spec.bytes()));
    at = entry.end;
  }
  ASSERT_EQ(at, header.data_bytes);
}

void Fuzz(int mutations, uint64_t seed) {
  std::mt19937_64 rng(seed);
  const std::string bases[] = {
      FormatSafetensorsHeader({}, {}),
      FormatSafetensorsHeader({{"a", at::kFloat, {2, 3}}}, {}),
      FormatSafetensorsHeader({{"a", at::kFloat, {2, 3}}, {"b", at::kBFloat16, {0, 7}}, {"c.d", at::kByte, {}}},
                              {{"format", "pt"}, {"k", "v"}}),
  };
  int accepted = 0, refused = 0;
  for (int i = 0; i < mutations; ++i) {
    const std::string file = Mutate(bases[rng() % std::size(bases)] + std::string(rng() % 3 == 0 ? 0 : 25, 'x'), rng);
    try {
      const uint64_t length = CheckSafetensorsPrefix(std::string_view(file).substr(0, 8), file.size(), "f");
      const auto header = ParseSafetensorsHeader(std::string_view(file).substr(8, length), file.size(), "f");
      CheckPromises(header, file.size());
      ++accepted;
    } catch (const UserError& e) {
      ASSERT_EQ(std::string(e.what()).rfind("f: ", 0), 0u) << e.what();
      ++refused;
    }
    // The JSON alone, without the length that most mutations break.
    const std::string json = Mutate(bases[rng() % std::size(bases)].substr(8), rng);
    const uint64_t bytes = 8 + json.size() + (rng() % 2 == 0 ? 25 : 24);
    try {
      CheckPromises(ParseSafetensorsHeader(json, bytes, "f"), bytes);
      ++accepted;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, mutations);
}

TEST(SafetensorsFuzz, Quick) { Fuzz(2000, 1); }
TEST(LongSafetensorsFuzz, ManySeeds) {
  for (uint64_t seed = 2; seed < 12; ++seed) Fuzz(200'000, seed);
}

}  // namespace
}  // namespace penstock::checkpoint
