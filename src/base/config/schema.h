// src/base/config/schema.h
//
// What a Config holds: the declared keys in order, and where each one's value came from.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/toml.h"

namespace penstock::config {

enum class Type { kBool, kInt, kBytes, kReal, kString, kIntList, kRealList, kStringList };

struct Key {
  std::string section;
  std::string leaf;
  Type type = Type::kBool;
  std::string help, unit;
  bool required = false;
  std::function<bool()> only_if;
  std::string only_if_text;
  std::optional<int64_t> int_min, int_max;
  std::optional<double> real_min, real_above, real_max, real_below;
  bool allow_infinite = false;
  std::vector<std::string> choices;

  std::function<Value()> read;
  std::function<void(const Value&)> assign;  // the value is of the type and inside the bounds
  Value default_value;
  std::string where;  // "" while the default holds

  std::string FullName() const { return section.empty() ? leaf : section + "." + leaf; }
  bool HasEffect() const { return !only_if || only_if(); }
};

struct Requirement {
  std::vector<std::string> keys;  // full names
  std::function<std::string()> complaint;
};

struct Schema {
  std::vector<std::string> sections;  // in order of declaration; "" first when it has keys
  std::map<std::string, std::string> section_help;
  std::vector<Key> keys;
  std::map<std::string, size_t, std::less<>> index;  // full name -> position in keys
  std::vector<Requirement> requirements;

  const Key* Find(std::string_view full_name) const;
  const Key& Get(std::string_view full_name) const;  // InternalError when not declared
  std::vector<const Key*> KeysOf(std::string_view section) const;
};

// The value of `node` for `key`. UserError with the reason alone ("must be an integer, not a text ('3')").
Value Convert(const Key& key, const Node& node);

// "at least 1", "more than 0, at most 1", "one of 'a', 'b'"; "" when unbounded.
std::string BoundText(const Key& key);
std::string_view TypeName(Type type);
// The value as TOML, for every type.
std::string TomlValue(const Value& value);

}  // namespace penstock::config
