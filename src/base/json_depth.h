// src/base/json_depth.h
//
// How deep a JSON text is nested, before anything is made of it. The JSON library copies, compares and prints values by
// recursion, and so do readers of tokenizers: text from others that is nested without bound would exhaust the stack.
// Any thread.
#pragma once

#include <string_view>

namespace penstock {

// More than any file of the formats that are read here.
inline constexpr int kMaxJsonDepth = 64;

// Whether brackets outside of texts are open more than `most` deep anywhere. Of any bytes, JSON or not.
inline bool IsNestedDeeper(std::string_view text, int most = kMaxJsonDepth) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace penstock
