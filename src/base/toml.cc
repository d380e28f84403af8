#include "base/toml.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/utf8.h"

namespace penstock::config {
// A precondition inside the library did not hold: malformed text that its parser lets through too far (found by the
// fuzz test, for example a key that starts with a stray byte after a dot).
struct MalformedToml {};
[[noreturn]] static void ThrowMalformedToml() { throw MalformedToml(); }
}  // namespace penstock::config

// The library's assertions would abort, and be assumptions (undefined behaviour) with NDEBUG; they throw instead.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::penstock::config::ThrowMalformedToml())
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

namespace penstock::config {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxDepth = 100;

// The library recurses over dotted keys without a limit, in its destructors too; so depth is bounded before it sees
// the text. Counts the dots of one key outside strings and comments.
void CheckDepth(std::string_view text, const std::string& name) {
  int dots = 0;
  int64_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      const bool multi = text.substr(i, 3) == std::string(3, c);
      const size_t quotes = multi ? 3 : 1;
      i += quotes;
      while (i < text.size() && text.substr(i, quotes) != std::string(quotes, c) && (multi || text[i] != '\n')) {
        if (text[i] == '\\' && c == '"' && i + 1 < text.size()) ++i;
        if (text[i] == '\n') ++line;
        ++i;
      }
      i += quotes - 1;
      if (i < text.size() && text[i] == '\n') ++line;
    } else if (c == '=' || c == ',' || c == '{' || c == '[') {
      dots = 0;
    } else if (c == '.' && ++dots > kMaxDepth) {
      throw UserError("{}:{}: keys are nested deeper than {} levels", name, line, kMaxDepth);
    }
  }
}

template <typename T>
std::string Streamed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

Node Convert(const toml::node& node, int64_t line) {
  Node out;
  out.line = line;
  if (const auto* boolean = node.as_boolean()) {
    out.kind = Node::Kind::kBool;
    out.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    out.kind = Node::Kind::kInt;
    out.integer = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    out.kind = Node::Kind::kReal;
    out.real = real->get();
  } else if (const auto* text = node.as_string()) {
    out.kind = Node::Kind::kString;
    out.text = text->get();
  } else if (const auto* array = node.as_array()) {
    out.kind = Node::Kind::kArray;
    for (const toml::node& item : *array) out.items.push_back(Convert(item, item.source().begin.line));
  } else if (const auto* table = node.as_table()) {
    for (auto&& [key, value] : *table)
      out.keys.emplace_back(std::string(key.str()), Convert(value, key.source().begin.line));
    std::stable_sort(out.keys.begin(), out.keys.end(),
                     [](const auto& a, const auto& b) { return a.second.line < b.second.line; });
  } else {
    out.kind = Node::Kind::kDate;
    if (const auto* date = node.as_date()) out.text = Streamed(date->get());
    if (const auto* time = node.as_time()) out.text = Streamed(time->get());
    if (const auto* moment = node.as_date_time()) out.text = Streamed(moment->get());
  }
  return out;
}

}  // namespace

std::string_view KindName(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kBool:
      return "true or false";
    case Node::Kind::kInt:
      return "an integer";
    case Node::Kind::kReal:
      return "a real number";
    case Node::Kind::kString:
      return "a text";
    case Node::Kind::kDate:
      return "a date or time";
    case Node::Kind::kArray:
      return "a list";
    case Node::Kind::kTable:
      return "a section";
  }
  return "";
}

Node ParseToml(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBytes)
    throw UserError("{}: {} bytes are too much for a configuration (at most {})", name, text.size(), kMaxBytes);
  CheckDepth(text, name);
  try {
    const toml::table table = toml::parse(text);
    return Convert(table, 1);
  } catch (const toml::parse_error& error) {
    const std::string reason = Printable(error.description(), 300);
    const bool duplicate = reason.find("redefin") != std::string::npos;
    throw UserError("{}:{}: {}{}", name, error.source().begin.line, duplicate ? "a key is given twice: " : "", reason);
  } catch (const MalformedToml&) {
    throw UserError("{}: this is not TOML", name);
  }
}

std::string TomlText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7f) {
      out += fmt::format("\\u{:04X}", u);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string TomlReal(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string Printable(std::string_view text, size_t limit) {
  std::string out;
  size_t at = 0;
  while (at < text.size() && at < limit) {
    const size_t length = Utf8Length(text.substr(at, 4));
    const auto c = static_cast<unsigned char>(text[at]);
    if (length == 0 || c < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", c);
    else
      out += text.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  if (at < text.size()) out += "...";
  return out;
}

std::string Shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kBool:
      return node.boolean ? "true" : "false";
    case Node::Kind::kInt:
      return fmt::format("{}", node.integer);
    case Node::Kind::kReal:
      return fmt::format("{}", node.real);
    case Node::Kind::kString:
      return fmt::format("'{}'", Printable(node.text));
    case Node::Kind::kDate:
      return Printable(node.text);
    case Node::Kind::kTable:
      return "{...}";
    case Node::Kind::kArray:
      break;
  }
  std::string out = "[";
  for (size_t i = 0; i < node.items.size() && i < 8; ++i)
    out += (i ? ", " : "") + (node.items[i].kind == Node::Kind::kArray ? "[...]" : Shown(node.items[i]));
  return out + (node.items.size() > 8 ? ", ...]" : "]");
}

}  // namespace penstock::config
