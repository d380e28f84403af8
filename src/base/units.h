// src/base/units.h
//
// Quantities as text. Bytes are binary (KiB = 1024) or decimal (kB = 1000) as the unit says, never a mixture: "K", "M"
// and "G" alone are refused. Output of bytes is always binary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

// 1536 -> "1.50 KiB", 17 -> "17 B".
std::string FormatBytes(int64_t bytes);
// "17", "17 B", "1.5 GiB", "200MB" -> bytes. UserError when the text has another form, is negative, has a fraction of
// a byte or does not fit in 63 bits.
int64_t ParseBytes(std::string_view text);

// 0.0000125 -> "12.5 us", 3.2 -> "3.20 s", 3723 -> "1:02:03".
std::string FormatSeconds(double seconds);

// 1234567 -> "1.23 M", 999 -> "999" (parameters, tokens per second).
std::string FormatCount(double count);

}  // namespace penstock
