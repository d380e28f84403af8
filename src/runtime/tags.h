// src/runtime/tags.h
//
// The tag of a message or collective is the key of its action, so a mismatch names the schedule's own words.
#pragma once

#include <cstdint>
#include <string>

#include "comm/tag.h"
#include "schedule/action.h"

namespace penstock::runtime {

// `item` tells several transfers of one action apart (parameter of a unit).
comm::Tag TagOf(const schedule::Key& key, int64_t step, int item = 0);
// "activation 1.3 (step 7)". send and recv of one message have the same tag.
std::string NameOfTag(const comm::Tag& tag);

}  // namespace penstock::runtime
