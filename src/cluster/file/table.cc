#include "cluster/file/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"

namespace penstock::cluster {
namespace {

using config::Node;
using Kind = Node::Kind;

constexpr size_t kMaxFaults = 20;  // shown of one file

const Node* Member(const Node& table, std::string_view key) {
  for (const auto& [name, node] : table.keys)
    if (name == key) return &node;
  return nullptr;
}

std::string WrongType(std::string_view wanted, const Node& node) {
  return fmt::format("must be {}, not {} ({})", wanted, config::KindName(node.kind), config::Shown(node));
}

// {a = {b = "x"}, "c.d" = "y"} -> "a.b": "x", "c.d": "y".
void Flatten(const Node& node, const std::string& prefix, std::vector<std::pair<std::string, const Node*>>& out) {
  for (const auto& [key, value] : node.keys) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.kind == Kind::kTable)
      Flatten(value, name, out);
    else
      out.emplace_back(name, &value);
  }
}

bool IsOrIsBelow(std::string_view key, std::string_view prefix) {
  return key.substr(0, prefix.size()) == prefix && (key.size() == prefix.size() || key[prefix.size()] == '.');
}

void RefuseUnknown(const Node& table, const std::string& name, const std::vector<std::string>& known, Faults& faults) {
  for (const auto& [key, node] : table.keys)
    if (std::find(known.begin(), known.end(), key) == known.end())
      faults.Add(node.line, fmt::format("unknown key '{}{}{}'{}", name, name.empty() ? "" : ".", config::Printable(key),
                                        DidYouMean(key.substr(0, 64), known)));
}

}  // namespace

void Faults::Add(int64_t line, std::string_view reason) {
  list_.emplace_back(line, fmt::format("{}:{}: {}", file_, line, reason));
}

void Faults::Throw() const {
  if (list_.empty()) return;
  auto sorted = list_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (size_t i = 0; i < sorted.size() && i < kMaxFaults; ++i) text += (i ? "\n" : "") + sorted[i].second;
  if (sorted.size() > kMaxFaults) text += fmt::format("\n... and {} more", sorted.size() - kMaxFaults);
  throw UserError("{}", text);
}

Table::Table(const Node* node, std::string name, int64_t line, Faults& faults)
    : node_(node), name_(std::move(name)), line_(line), faults_(faults) {
  if (node_ != nullptr && node_->kind != Kind::kTable) {
    faults_.Add(node_->line, fmt::format("{}: {}", name_, WrongType("a section", *node_)));
    node_ = nullptr;
  }
}

const Node* Table::Find(std::string_view key, bool required) {
  known_.emplace_back(key);
  const Node* found = node_ == nullptr ? nullptr : Member(*node_, key);
  if (found == nullptr && required && node_ != nullptr) Fault(fmt::format("'{}' is missing", key));
  return found;
}

void Table::Fault(std::string_view reason) {
  faults_.Add(line_, fmt::format("{}{}{}", name_, name_.empty() ? "" : ": ", reason));
}

void Table::Fault(const Node& node, std::string_view key, std::string_view reason) {
  faults_.Add(node.line, fmt::format("{}.{}: {}", name_, key, reason));
}

std::string Table::Text(std::string_view key, bool required) {
  const Node* node = Find(key, required);
  if (node == nullptr) return "";
  if (node->kind != Kind::kString) Fault(*node, key, WrongType("a text", *node));
  return node->text;
}

std::string Table::Name(std::string_view key) {
  const Node* node = Find(key, true);
  if (node == nullptr) return "";
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (node->kind != Kind::kString) {
    Fault(*node, key, WrongType("a text", *node));
  } else if (node->text.empty() || node->text.size() > 64 ||
             node->text.find_first_not_of(kAllowed) != std::string::npos) {
    Fault(*node, key,
          fmt::format("'{}' is no name: use 1 to 64 letters, digits, '-', '_' and '.'", config::Printable(node->text)));
  } else {
    return node->text;
  }
  return "";
}

bool Table::Bool(std::string_view key) {
  const Node* node = Find(key);
  if (node == nullptr) return false;
  if (node->kind != Kind::kBool) Fault(*node, key, WrongType("true or false", *node));
  return node->boolean;
}

std::optional<int64_t> Table::Index(std::string_view key, bool required, int64_t min, int64_t max) {
  const Node* node = Find(key, required);
  if (node == nullptr) return std::nullopt;
  if (node->kind != Kind::kInt)
    Fault(*node, key, WrongType("an integer", *node));
  else if (node->integer < min || node->integer > max)
    Fault(*node, key, fmt::format("{} is out of bounds: at least {}, at most {}", node->integer, min, max));
  else
    return node->integer;
  return std::nullopt;
}

std::optional<double> Table::Real(const Node& node, std::string_view key, double min, double max) {
  const double value = node.kind == Kind::kInt ? static_cast<double>(node.integer) : node.real;
  if (node.kind != Kind::kInt && node.kind != Kind::kReal)
    Fault(node, key, WrongType("a number", node));
  else if (!(value >= min && value <= max))  // also what is no number
    Fault(node, key, fmt::format("{} is out of bounds: at least {}, at most {}", value, min, max));
  else
    return value;
  return std::nullopt;
}

void Table::Read(const NumberField& field) {
  const Node* node = Find(field.key, field.required);
  if (node == nullptr) return;
  numbers_.emplace_back(field.key, node->line);
  Node number = *node;
  if (node->kind == Kind::kString && field.unit != NumberField::Unit::kPlain) {
    std::string_view text = node->text;
    if (field.unit == NumberField::Unit::kBytesPerSecond) {
      if (!text.ends_with("/s"))
        return Fault(*node, field.key,
                     fmt::format("'{}' is no rate; write 300e9 or \"300 GB/s\"", config::Printable(text)));
      text.remove_suffix(2);
    }
    try {
      number.integer = ParseBytes(text);
      number.kind = Kind::kInt;
    } catch (const UserError& error) {
      return Fault(*node, field.key, error.what());
    }
  }
  std::visit(
      [&](auto* variable) {
        using T = std::decay_t<decltype(*variable)>;
        if (!std::is_same_v<T, double> && number.kind != Kind::kInt)
          return Fault(*node, field.key, WrongType("an integer", *node));
        if (const auto value = Real(number, field.key, field.min, field.max))
          *variable = std::is_same_v<T, double> ? static_cast<T>(*value) : static_cast<T>(number.integer);
      },
      field.value);
}

const Node* Table::FindDotted(std::string_view key, bool required) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos) return Find(key, required);
  const std::string_view head = key.substr(0, dot), leaf = key.substr(dot + 1);
  auto below = std::find_if(known_below_.begin(), known_below_.end(), [&](const auto& b) { return b.first == head; });
  if (below == known_below_.end()) {
    known_below_.push_back({std::string(head), {}});
    below = std::prev(known_below_.end());
    const Node* node = Find(head, required);
    if (node != nullptr && node->kind != Kind::kTable) Fault(*node, head, WrongType("a section", *node));
  }
  below->second.emplace_back(leaf);
  const Node* table = node_ == nullptr ? nullptr : Member(*node_, head);
  return table == nullptr ? nullptr : Member(*table, leaf);
}

void Table::Read(const CurveField& field) {
  const Node* node = FindDotted(field.key, false);
  if (node == nullptr) return;
  constexpr std::string_view kWanted = "a list of pairs [size, share]";
  if (node->kind != Kind::kArray) return Fault(*node, field.key, WrongType(kWanted, *node));
  numbers_.emplace_back(field.key, node->line);
  std::vector<EfficiencyCurve::Point> points;
  for (const Node& item : node->items) {
    if (item.kind != Kind::kArray || item.items.size() != 2)
      return Fault(item, field.key, fmt::format("must be {}; {} is none", kWanted, config::Shown(item)));
    const auto size = Real(item.items[0], field.key, 1e-300, 1e30);
    const auto share = Real(item.items[1], field.key, 1e-300, 1);
    if (!size || !share) return;
    if (!points.empty() && *size <= points.back().size)
      return Fault(item, field.key, fmt::format("sizes must ascend: {} after {}", *size, points.back().size));
    points.push_back({*size, *share});
  }
  if (points.empty()) return Fault(*node, field.key, "has no points; leave the key out for a share of 1 everywhere");
  *field.curve = EfficiencyCurve(std::move(points));
}

void Table::Read(const Fields& fields) {
  for (const NumberField& field : fields.numbers) Read(field);
  for (const CurveField& field : fields.curves) Read(field);
}

std::map<std::string, double, std::less<>> Table::Flops() {
  constexpr std::string_view kKey = "flops_per_second";
  std::map<std::string, double, std::less<>> out;
  const Node* node = Find(kKey, true);
  if (node == nullptr) return out;
  if (node->kind != Kind::kTable || node->keys.empty()) {
    Fault(*node, kKey, "must give a peak by precision, for example { fp32 = 19.5e12, bf16 = 312e12 }");
    return out;
  }
  known_below_.push_back({std::string(kKey), KnownPrecisions()});
  for (const auto& [precision, value] : node->keys) {
    const std::string key = fmt::format("{}.{}", kKey, config::Printable(precision));
    const auto& known = KnownPrecisions();
    if (std::find(known.begin(), known.end(), precision) == known.end()) continue;  // Finish says so
    numbers_.emplace_back(key, value.line);
    if (const auto rate = Real(value, key, 1, kMaxFlops)) out[precision] = *rate;
  }
  return out;
}

void Table::Sources(std::map<std::string, std::string>& out) {
  const std::string common = Text("source", false);
  const Node* node = Find("sources");
  std::vector<std::pair<std::string, const Node*>> single;
  if (node != nullptr && node->kind == Kind::kTable)
    Flatten(*node, "", single);
  else if (node != nullptr)
    Fault(*node, "sources", WrongType("a section of key = \"where it comes from\"", *node));

  std::vector<std::string> keys, missing;
  for (const auto& [key, line] : numbers_) keys.push_back(key);
  for (const auto& [name, text] : single) {
    const std::string key = fmt::format("sources.{}", config::Printable(name, 120));
    if (text->kind != Kind::kString || text->text.empty())
      Fault(*text, key, "must be a text that says where the number comes from");
    else if (std::none_of(keys.begin(), keys.end(), [&, n = name](const auto& k) { return IsOrIsBelow(k, n); }))
      Fault(*text, key, fmt::format("there is no such number in this section{}", DidYouMean(name.substr(0, 64), keys)));
  }
  int64_t line = line_;
  for (const auto& [key, at] : numbers_) {
    const std::string* source = common.empty() ? nullptr : &common;
    size_t longest = 0;
    for (const auto& [name, text] : single) {
      if (!IsOrIsBelow(key, name) || name.size() <= longest) continue;
      longest = name.size();
      source = &text->text;
    }
    if (source != nullptr) {
      out[name_ + "." + key] = *source;
      continue;
    }
    if (missing.empty()) line = at;
    missing.push_back(name_ + "." + key);
  }
  if (!missing.empty())
    faults_.Add(line, fmt::format("no source for {}; write source = \"...\" in the section, or sources.{} = \"...\"",
                                  fmt::join(missing, ", "), missing[0].substr(name_.size() + 1)));
}

void Table::Finish() {
  if (node_ == nullptr) return;
  RefuseUnknown(*node_, name_, known_, faults_);
  for (const auto& [head, known] : known_below_)
    if (const Node* table = Member(*node_, head); table != nullptr && table->kind == Kind::kTable)
      RefuseUnknown(*table, name_ + "." + head, known, faults_);
}

}  // namespace penstock::cluster
