// src/tokenizer/files/describe_step.h
//
// A step of a tokenizer.json (normalizer, pre_tokenizer, decoder) for people: its type, what is set in it, and the
// steps of a sequence in their order. Known patterns are called by their name.
#pragma once

#include <string>

#include "tokenizer/files/json.h"

namespace penstock::tokenizer {

// "none" for a null; "Split(pattern of llama3, behavior Isolated), then ByteLevel".
std::string DescribeStep(const Json& step);

}  // namespace penstock::tokenizer
