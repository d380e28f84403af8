// src/comm/tag.h
//
// What a message or a collective is, as 16 bytes the caller fills (the executor: the key of the action). Both sides
// compare tags at run time, so a wrong order is an error that names both orders instead of a hang or, worse, a tensor
// taken for another one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace penstock::comm {

struct Tag {
  uint64_t what = 0;
  uint64_t which = 0;
  friend bool operator==(const Tag&, const Tag&) = default;
};

// Turns a tag into the words of error messages ("activation s1 m3"). Must be callable from any thread.
using TagNamer = std::function<std::string(const Tag&)>;

// How many of the last tags of each side the message of a mismatch shows.
inline constexpr int kShownHistory = 4;

// "what/which" in decimal: the namer of a communicator that was given none.
std::string PlainTagName(const Tag& tag);

}  // namespace penstock::comm
