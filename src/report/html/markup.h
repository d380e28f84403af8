// src/report/html/markup.h
//
// Text of a page.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::report::html {

// For content and for attributes in double quotes. What is not UTF-8 and control characters become U+FFFD.
std::string Escape(std::string_view text);

// Appends; arguments are put in as they are.
template <typename... Args>
void Add(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

// A table of finished cells. Columns whose head starts with '<' are left-aligned text, others numbers.
struct Table {
  std::string caption;            // for screen readers and as a title; escaped here
  std::vector<std::string> head;  // escaped here
  std::vector<std::vector<std::string>> rows;
  // Rows beyond `shown` are folded away behind a line that says how many.
  std::string Print(size_t shown = 12) const;
};

// A square of a colour before a word.
std::string Swatch(std::string_view colour);

// "optimizer_state" -> "optimizer state"
std::string InWords(std::string_view name);

// "12.3 %", not broken between lines
std::string Percent(double share);

}  // namespace penstock::report::html
