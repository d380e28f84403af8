// src/base/rational.h
//
// Exact rationals over int64 (checked: overflow throws InternalError). Always in lowest terms, denominator > 0.
// Used for schedule times and closed forms, where "equal" must mean equal.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(int64_t integer) : numerator_(integer) {}  // NOLINT: implicit on purpose
  Rational(int64_t numerator, int64_t denominator);
  // "3", "-1/2", "0.25" (decimal digits are exact). UserError otherwise.
  static Rational Parse(std::string_view text);

  int64_t numerator() const { return numerator_; }
  int64_t denominator() const { return denominator_; }
  double ToDouble() const { return static_cast<double>(numerator_) / static_cast<double>(denominator_); }
  // "7" or "57/2".
  std::string ToString() const;

  Rational operator-() const;
  friend Rational operator+(Rational a, Rational b);
  friend Rational operator-(Rational a, Rational b);
  friend Rational operator*(Rational a, Rational b);
  friend Rational operator/(Rational a, Rational b);
  Rational& operator+=(Rational b) { return *this = *this + b; }
  Rational& operator-=(Rational b) { return *this = *this - b; }
  Rational& operator*=(Rational b) { return *this = *this * b; }
  friend bool operator==(const Rational&, const Rational&) = default;
  friend std::strong_ordering operator<=>(Rational a, Rational b);

 private:
  int64_t numerator_ = 0;
  int64_t denominator_ = 1;
};

}  // namespace penstock
