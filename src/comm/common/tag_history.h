// src/comm/common/tag_history.h
//
// The last tags of one side of a channel, for the message of a mismatch.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "comm/tag.h"

namespace penstock::comm {

class TagHistory {
 public:
  void Add(const Tag& tag);
  // "..., F1, F2".
  std::string ToString(const TagNamer& namer) const;

 private:
  std::deque<Tag> last_;
  uint64_t count_ = 0;
};

}  // namespace penstock::comm
