#include "base/units.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock {
namespace {

TEST(Units, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(int64_t{3} << 30), "3.00 GiB");
  EXPECT_EQ(FormatBytes(INT64_MAX), "8.00 EiB");
  EXPECT_EQ(ParseBytes("17"), 17);
  EXPECT_EQ(ParseBytes("1.5 GiB"), 1610612736);
  EXPECT_EQ(ParseBytes("200MB"), 200'000'000);
  for (const char* bad : {"", "x", "-1", "1 K", "1 G", "1.5", "0.3 B", "1 mb", "1..2", ".", "9999999 TiB", "1e3",
                          "1 KiB x", "99999999999999999999999"})
    EXPECT_THROW(ParseBytes(bad), UserError) << bad;
}

TEST(Units, Seconds) {
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(12.5e-6), "12.5 us");
  EXPECT_EQ(FormatSeconds(0.25), "250 ms");
  EXPECT_EQ(FormatSeconds(3.2), "3.20 s");
  EXPECT_EQ(FormatSeconds(59.999), "1:00");
  EXPECT_EQ(FormatSeconds(3723), "1:02:03");
}

TEST(Units, Counts) {
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1234567), "1.23 M");
  EXPECT_EQ(FormatCount(-12'000), "-12 k");
}

}  // namespace
}  // namespace penstock
