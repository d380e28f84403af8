#include "base/units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/rational.h"

namespace penstock {
namespace {

constexpr std::array<std::pair<std::string_view, int64_t>, 9> kByteUnits = {{
    {"B", 1},
    {"kB", 1000},
    {"MB", 1000'000},
    {"GB", 1000'000'000},
    {"TB", 1000'000'000'000},
    {"KiB", int64_t{1} << 10},
    {"MiB", int64_t{1} << 20},
    {"GiB", int64_t{1} << 30},
    {"TiB", int64_t{1} << 40},
}};

}  // namespace

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = std::abs(static_cast<double>(bytes));
  int unit = 0;
  while (value >= 1023.5 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  const char* sign = bytes < 0 ? "-" : "";
  if (unit == 0) return fmt::format("{}{:.0f} B", sign, value);
  return fmt::format("{}{:.{}f} {}", sign, value, value < 10 ? 2 : value < 100 ? 1 : 0, kNames[unit]);
}

int64_t ParseBytes(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    throw UserError("'{}' is not a number of bytes: {}; write for example 4096, \"64 MiB\" or \"1.5 GB\"",
                    text.substr(0, 60), why);
  };
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0) refuse("it does not start with a positive number");
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  int64_t scale = unit.empty() ? 1 : 0;
  for (const auto& [name, bytes] : kByteUnits)
    if (unit == name) scale = bytes;
  if (scale == 0) refuse("its unit is not one of B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (of 1024)");
  Rational number;
  try {
    number = Rational::Parse(text.substr(0, digits));
  } catch (const Error&) {
    refuse("its number is malformed");
  }
  const __int128 product = static_cast<__int128>(number.numerator()) * scale;
  if (product % number.denominator() != 0) refuse("it is not a whole number of bytes");
  const __int128 bytes = product / number.denominator();
  if (bytes > INT64_MAX) refuse("it is too large");
  return static_cast<int64_t>(bytes);
}

std::string FormatSeconds(double seconds) {
  const double s = std::abs(seconds);
  const char* sign = seconds < 0 ? "-" : "";
  if (!std::isfinite(seconds)) return fmt::format("{}", seconds);
  if (s == 0) return "0 s";
  if (s < 999.5e-9) return fmt::format("{}{:.3g} ns", sign, s * 1e9);
  if (s < 999.5e-6) return fmt::format("{}{:.3g} us", sign, s * 1e6);
  if (s < 999.5e-3) return fmt::format("{}{:.3g} ms", sign, s * 1e3);
  if (s < 59.995) return fmt::format("{}{:.2f} s", sign, s);
  if (s >= 1e15) return fmt::format("{} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(s));
  if (whole < 3600) return fmt::format("{}{}:{:02}", sign, whole / 60, whole % 60);
  return fmt::format("{}{}:{:02}:{:02}", sign, whole / 3600, whole / 60 % 60, whole % 60);
}

std::string FormatCount(double count) {
  static constexpr const char* kNames[] = {"", " k", " M", " G", " T", " P", " E"};
  if (!std::isfinite(count)) return fmt::format("{}", count);
  double value = std::abs(count);
  int unit = 0;
  while (value >= 999.5 && unit < 6) {
    value /= 1000;
    ++unit;
  }
  const char* sign = count < 0 ? "-" : "";
  if (unit == 0 && value == std::floor(value)) return fmt::format("{}{:.0f}", sign, value);
  return fmt::format("{}{:.3g}{}", sign, value, kNames[unit]);
}

}  // namespace penstock
