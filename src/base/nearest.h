// src/base/nearest.h
//
// Nearest names for messages about misspelt ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// Levenshtein distance, adjacent swaps count one.
int EditDistance(std::string_view a, std::string_view b);

// "; did you mean 'x'?" when a candidate is close, else "; known: a, b, c" (at most 20 names). Empty when there are
// no candidates.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace penstock
