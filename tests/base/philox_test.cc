#include "base/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock {
namespace {

// Known-answer vectors of the Random123 distribution, philox4x32-10.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NameHashIsFnv1a) {
  static_assert(HashName("") == 0xcbf29ce484222325ull);
  static_assert(HashName("a") == 0xaf63dc4c8601ec8cull);
}

TEST(Philox, KeysOfStreamsAndSeedsDiffer) {
  std::set<PhiloxKey> keys;
  for (uint64_t seed = 0; seed < 1000; ++seed)
    for (const char* stream : {"init", "dropout", "data"}) keys.insert(MakePhiloxKey(seed, stream));
  EXPECT_EQ(keys.size(), 3000u);
}

TEST(Philox, UniformIsInTheHalfOpenInterval) {
  EXPECT_EQ(PhiloxUniform(0xffffffffu), 1.0f);
  EXPECT_EQ(PhiloxUniform(0), 0x1p-24f);
  double sum = 0;
  for (uint32_t i = 0; i < 10000; ++i) sum += PhiloxUniform(Philox({i, 0, 0, 0}, {1, 2})[0]);
  EXPECT_NEAR(sum / 10000, 0.5, 0.01) << "3.5 standard deviations of the mean";
}

}  // namespace
}  // namespace penstock
