// src/base/utf8_stream.h
//
// Bytes that come in pieces, as text that may be shown: always valid UTF-8. A character that is cut off at the end of a
// piece is held back until its rest has come; bytes that are no UTF-8 become U+FFFD, one for each maximal part of a
// character (the practice of the Unicode standard, chapter 3.9, "substitution of maximal subparts").
// Single thread.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

class Utf8Stream {
 public:
  // What can be shown now.
  std::string Push(std::string_view bytes);
  // The end: what was held back will get no rest.
  std::string Finish();

 private:
  std::string held_;  // the beginning of a character
};

// All of it at once.
std::string ToValidUtf8(std::string_view bytes);

}  // namespace penstock
