#include "base/rational.h"

#include <limits>
#include <numeric>

#include "base/error.h"

namespace penstock {
namespace {

using Wide = __int128;

Wide Gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

int64_t Narrow(Wide x) {
  PENSTOCK_CHECK(x <= std::numeric_limits<int64_t>::max() && x >= std::numeric_limits<int64_t>::min(),
                 "rational overflow");
  return static_cast<int64_t>(x);
}

Rational Reduced(Wide n, Wide d) {
  PENSTOCK_CHECK(d != 0, "division of a rational by zero");
  if (d < 0) {
    n = -n;
    d = -d;
  }
  const Wide g = Gcd(n, d);
  if (g > 1) {
    n /= g;
    d /= g;
  }
  return Rational(Narrow(n), Narrow(d));
}

}  // namespace

Rational::Rational(int64_t numerator, int64_t denominator) : numerator_(numerator), denominator_(denominator) {
  PENSTOCK_CHECK(denominator != 0, "rational with denominator 0");
  if (denominator < 0 || std::gcd(numerator, denominator) != 1) {
    if (denominator == 1) return;
    *this = Reduced(numerator, denominator);
  }
}

Rational Rational::operator-() const { return Reduced(-static_cast<Wide>(numerator_), denominator_); }

Rational operator+(Rational a, Rational b) {
  return Reduced(static_cast<Wide>(a.numerator_) * b.denominator_ + static_cast<Wide>(b.numerator_) * a.denominator_,
                 static_cast<Wide>(a.denominator_) * b.denominator_);
}
Rational operator-(Rational a, Rational b) { return a + (-b); }
Rational operator*(Rational a, Rational b) {
  return Reduced(static_cast<Wide>(a.numerator_) * b.numerator_, static_cast<Wide>(a.denominator_) * b.denominator_);
}
Rational operator/(Rational a, Rational b) {
  return Reduced(static_cast<Wide>(a.numerator_) * b.denominator_, static_cast<Wide>(a.denominator_) * b.numerator_);
}
std::strong_ordering operator<=>(Rational a, Rational b) {
  return static_cast<Wide>(a.numerator_) * b.denominator_ <=> static_cast<Wide>(b.numerator_) * a.denominator_;
}

std::string Rational::ToString() const {
  return denominator_ == 1 ? fmt::format("{}", numerator_) : fmt::format("{}/{}", numerator_, denominator_);
}

Rational Rational::Parse(std::string_view text) {
  const auto fail = [&]() -> Rational { throw UserError("'{}' is not a number (try 2, 1/3 or 0.25)", text); };
  const auto integer = [&](std::string_view digits) -> int64_t {
    if (digits.empty() || digits.size() > 17) fail();
    int64_t value = 0;
    for (char c : digits) {
      if (c < '0' || c > '9') fail();
      value = value * 10 + (c - '0');
    }
    return value;
  };
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (negative) rest.remove_prefix(1);
  Rational value;
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    const int64_t d = integer(rest.substr(slash + 1));
    if (d == 0) fail();
    value = Rational(integer(rest.substr(0, slash)), d);
  } else if (const size_t dot = rest.find('.'); dot != std::string_view::npos) {
    const std::string_view fraction = rest.substr(dot + 1);
    int64_t scale = 1;
    if (fraction.size() > 9) fail();
    for (size_t i = 0; i < fraction.size(); ++i) scale *= 10;
    const Rational whole = dot == 0 ? Rational(0) : Rational(integer(rest.substr(0, dot)));
    value = whole + (fraction.empty() ? Rational(0) : Rational(integer(fraction), scale));
    if (dot == 0 && fraction.empty()) fail();
  } else {
    value = integer(rest);
  }
  return negative ? -value : value;
}

}  // namespace penstock
