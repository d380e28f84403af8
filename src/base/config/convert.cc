// From a TOML node to a checked value of a key.
#include <algorithm>
#include <cmath>

#include "base/config/schema.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"

namespace penstock::config {
namespace {

[[noreturn]] void WrongType(std::string_view wanted, const Node& node, std::string_view hint = "") {
  throw UserError("must be {}, not {} ({}){}", wanted, KindName(node.kind), Shown(node), hint);
}

template <typename T>
void CheckBound(bool holds, const T& value, std::string_view bound, const std::optional<T>& limit) {
  if (limit && !holds) throw UserError("{} is out of bounds: it must be {} {}", value, bound, *limit);
}

int64_t CheckedInt(const Key& key, int64_t value) {
  CheckBound(value >= key.int_min.value_or(value), value, "at least", key.int_min);
  CheckBound(value <= key.int_max.value_or(value), value, "at most", key.int_max);
  return value;
}

int64_t ToInt(const Key& key, const Node& node) {
  if (node.kind == Node::Kind::kInt) return CheckedInt(key, node.integer);
  if (node.kind == Node::Kind::kReal && std::isfinite(node.real) && node.real == std::floor(node.real) &&
      std::abs(node.real) < 0x1p53)
    WrongType("an integer", node, fmt::format("; write {}", static_cast<int64_t>(node.real)));
  if (node.kind == Node::Kind::kString && !node.text.empty() &&
      node.text.find_first_not_of("0123456789", node.text[0] == '-') == std::string::npos)
    throw UserError(node.text.size() > 18
                        ? fmt::format("{} is out of range: an integer is at most 9223372036854775807", Shown(node))
                        : fmt::format("must be an integer, not a text ({}); remove the quotes", Shown(node)));
  WrongType("an integer", node);
}

int64_t ToBytes(const Key& key, const Node& node) {
  if (node.kind == Node::Kind::kInt) return CheckedInt(key, node.integer);
  if (node.kind == Node::Kind::kString) return CheckedInt(key, ParseBytes(node.text));
  WrongType("a number of bytes such as 4096 or \"64 MiB\"", node);
}

double ToReal(const Key& key, const Node& node) {
  double value = node.real;
  if (node.kind == Node::Kind::kInt) {
    value = static_cast<double>(node.integer);
  } else if (node.kind != Node::Kind::kReal) {
    const bool number = node.kind == Node::Kind::kString && !node.text.empty() &&
                        node.text.find_first_not_of("0123456789.eE+-") == std::string::npos;
    WrongType("a real number", node, number ? "; remove the quotes" : "");
  }
  if (std::isnan(value)) throw UserError("must be a number, not nan");
  if (std::isinf(value) && !key.allow_infinite) throw UserError("must be finite, not {}", value);
  CheckBound(value >= key.real_min.value_or(value), value, "at least", key.real_min);
  CheckBound(value <= key.real_max.value_or(value), value, "at most", key.real_max);
  CheckBound(!key.real_above || value > *key.real_above, value, "more than", key.real_above);
  CheckBound(!key.real_below || value < *key.real_below, value, "less than", key.real_below);
  return value;
}

std::string ToString(const Key& key, const Node& node) {
  if (node.kind != Node::Kind::kString) WrongType("a text", node, "; put it in quotes");
  if (!IsUtf8(node.text)) throw UserError("must be UTF-8");
  if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), node.text) == key.choices.end()) {
    std::string nearest = DidYouMean(node.text.substr(0, 64), key.choices);
    if (nearest.rfind("; did", 0) != 0) nearest.clear();
    throw UserError("'{}' is not one of the choices{}; must be {}", Printable(node.text), nearest, BoundText(key));
  }
  return node.text;
}

template <typename T>
std::vector<T> ToList(const Key& key, const Node& node, T (*convert)(const Key&, const Node&)) {
  if (node.kind != Node::Kind::kArray)
    WrongType(TypeName(key.type), node,
              node.kind == Node::Kind::kTable ? std::string() : fmt::format("; write [{}]", Shown(node)));
  std::vector<T> out;
  for (size_t i = 0; i < node.items.size(); ++i) {
    try {
      out.push_back(convert(key, node.items[i]));
    } catch (const UserError& error) {
      throw UserError("element {}: {}", i + 1, error.what());
    }
  }
  return out;
}

}  // namespace

Value Convert(const Key& key, const Node& node) {
  switch (key.type) {
    case Type::kBool:
      if (node.kind != Node::Kind::kBool) WrongType("true or false", node);
      return node.boolean;
    case Type::kInt:
      return ToInt(key, node);
    case Type::kBytes:
      return ToBytes(key, node);
    case Type::kReal:
      return ToReal(key, node);
    case Type::kString:
      return ToString(key, node);
    case Type::kIntList:
      return ToList<int64_t>(key, node, ToInt);
    case Type::kRealList:
      return ToList<double>(key, node, ToReal);
    case Type::kStringList:
      return ToList<std::string>(key, node, ToString);
  }
  throw InternalError("config: unknown type");
}

std::string_view TypeName(Type type) {
  switch (type) {
    case Type::kBool:
      return "true or false";
    case Type::kInt:
      return "integer";
    case Type::kBytes:
      return "bytes";
    case Type::kReal:
      return "real";
    case Type::kString:
      return "text";
    case Type::kIntList:
      return "list of integers";
    case Type::kRealList:
      return "list of reals";
    case Type::kStringList:
      return "list of texts";
  }
  return "";
}

std::string BoundText(const Key& key) {
  std::string out;
  const auto add = [&](std::string_view words, const auto& limit) {
    if (limit) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", words, *limit);
  };
  add("at least", key.int_min);
  add("at most", key.int_max);
  add("at least", key.real_min);
  add("more than", key.real_above);
  add("at most", key.real_max);
  add("less than", key.real_below);
  for (size_t i = 0; i < key.choices.size(); ++i) out += fmt::format("{}'{}'", i ? ", " : "one of ", key.choices[i]);
  return out;
}

}  // namespace penstock::config
