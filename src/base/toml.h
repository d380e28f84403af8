// src/base/toml.h
//
// TOML text as a plain tree with line numbers, and values as TOML text; the only part of Penstock that knows the TOML
// library. For formats that are not a list of declared keys; a configuration is declared with base/config.h.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::config {

struct Node {
  enum class Kind { kBool, kInt, kReal, kString, kDate, kArray, kTable };
  Kind kind = Kind::kTable;
  int64_t line = 0;  // from 1
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string text;                                // of a string; of a date as written
  std::vector<Node> items;                         // of an array
  std::vector<std::pair<std::string, Node>> keys;  // of a table, in order of lines; the line is that of the key
};

// "a text", "a table", ...: for messages.
std::string_view KindName(Node::Kind kind);

// UserError "NAME:LINE: reason" for text that is not TOML 1.0, is larger than 1 MiB, or nests keys deeper than 100.
Node ParseToml(std::string_view text, const std::string& name);

// A basic string, quoted and escaped. The shortest text that reads back as the same number, and as a real.
std::string TomlText(std::string_view text);
std::string TomlReal(double value);

// A short printable form of a value, for messages.
std::string Shown(const Node& node);
// Text with control characters and what is no UTF-8 escaped, cut after about `limit` bytes: for messages and comments.
std::string Printable(std::string_view text, size_t limit = 60);

}  // namespace penstock::config
