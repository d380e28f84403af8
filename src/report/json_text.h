// src/report/json_text.h
//
// JSON values as text, for writers that stream. Doubles are the shortest text that reads back to the same bits.
#pragma once

#include <string>
#include <string_view>

namespace penstock::report {

// In double quotes; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);
// "null" when it is not finite: JSON has no infinities.
std::string JsonNumber(double value);

}  // namespace penstock::report
