#include "base/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/config/schema.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace penstock::config {
namespace {

constexpr size_t kMaxFaults = 20;  // shown of one file

std::string Join(std::string_view section, std::string_view leaf) {
  return section.empty() ? std::string(leaf) : fmt::format("{}.{}", section, leaf);
}

bool IsKeyName(std::string_view name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

void EnsureSection(Schema& schema, const std::string& name) {
  if (std::find(schema.sections.begin(), schema.sections.end(), name) != schema.sections.end()) return;
  PENSTOCK_CHECK(schema.index.count(name) == 0, "config: '{}' is a key already", name);
  // TOML wants the keys of the top level before the first section.
  schema.sections.insert(name.empty() ? schema.sections.begin() : schema.sections.end(), name);
}

template <typename O>
Key MakeKey(const std::string& section, std::string_view leaf, Type type, O&& options) {
  Key key;
  key.section = section;
  key.leaf = std::string(leaf);
  key.type = type;
  key.help = std::move(options.help);
  key.unit = std::move(options.unit);
  key.required = options.required;
  key.only_if = std::move(options.only_if);
  key.only_if_text = std::move(options.only_if_text);
  if constexpr (std::is_same_v<std::decay_t<O>, IntOptions>) {
    key.int_min = options.min;
    key.int_max = options.max;
  } else if constexpr (std::is_same_v<std::decay_t<O>, RealOptions>) {
    key.real_min = options.min;
    key.real_above = options.above;
    key.real_max = options.max;
    key.real_below = options.below;
    key.allow_infinite = options.allow_infinite;
  } else if constexpr (std::is_same_v<std::decay_t<O>, StringOptions>) {
    key.choices = std::move(options.choices);
  }
  return key;
}

// The default must pass the key's own checks, else the declaration is wrong.
void CheckDefault(const Key& key) {
  if (key.required) return;
  try {
    const Node tree = ParseToml("x = " + TomlValue(key.default_value), "default");
    Convert(key, tree.keys.at(0).second);
  } catch (const UserError& error) {
    throw InternalError(fmt::format("config: the default of {}: {}", key.FullName(), error.what()));
  }
}

void AddKey(Schema& schema, Key key) {
  PENSTOCK_CHECK(IsKeyName(key.leaf), "config: '{}' is no name for a key", key.leaf);
  PENSTOCK_CHECK(!key.help.empty(), "config: {} has no help", key.FullName());
  PENSTOCK_CHECK(!key.only_if == key.only_if_text.empty(), "config: {}: only_if and only_if_text go together",
                 key.FullName());
  const std::string full = key.FullName();
  EnsureSection(schema, key.section);
  PENSTOCK_CHECK(std::find(schema.sections.begin(), schema.sections.end(), full) == schema.sections.end(),
                 "config: '{}' is a section already", full);
  key.default_value = key.read();
  CheckDefault(key);
  PENSTOCK_CHECK(schema.index.emplace(full, schema.keys.size()).second, "config: {} is declared twice", full);
  schema.keys.push_back(std::move(key));
}

// A plain variable behind a key. Stored is the type in Value, T that of the variable.
template <typename Stored, typename T>
void Bind(Schema& schema, Key key, T* variable) {
  key.read = [variable]() -> Value { return static_cast<Stored>(*variable); };
  key.assign = [variable](const Value& value) { *variable = static_cast<T>(std::get<Stored>(value)); };
  AddKey(schema, std::move(key));
}

IntOptions Narrowed(IntOptions options) {
  options.min = std::max<int64_t>(options.min.value_or(INT32_MIN), INT32_MIN);
  options.max = std::min<int64_t>(options.max.value_or(INT32_MAX), INT32_MAX);
  return options;
}

std::vector<std::string> Leaves(const Schema& schema, std::string_view section) {
  std::vector<std::string> names;
  for (const Key* key : schema.KeysOf(section)) names.push_back(key->leaf);
  for (const std::string& other : schema.sections) {
    const size_t dot = other.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : other.substr(0, dot);
    if (!other.empty() && parent == section) names.push_back(other.substr(dot == std::string::npos ? 0 : dot + 1));
  }
  return names;
}

std::string Place(std::string_view section) {
  return section.empty() ? "at the top level" : fmt::format("in section [{}]", section);
}

// What would work instead of the unknown `leaf` in `section`.
std::string Suggestion(const Schema& schema, std::string_view section, std::string_view leaf) {
  leaf = leaf.substr(0, 64);
  std::vector<std::string> homes;
  for (const Key& key : schema.keys)
    if (key.leaf == leaf) homes.push_back(fmt::format("{} ({})", Place(key.section), key.FullName()));
  for (const std::string& other : schema.sections)
    if (other.substr(other.rfind('.') + 1) == leaf) homes.push_back(fmt::format("as section [{}]", other));
  if (!homes.empty()) return fmt::format("; it belongs {}", fmt::join(homes, ", or "));
  const std::string near = DidYouMean(leaf, Leaves(schema, section));
  if (near.rfind("; did", 0) == 0) return near;
  // Not close to anything here: perhaps to a key of another section.
  int best = std::max<int>(1, static_cast<int>(leaf.size()) / 3) + 1;
  std::string elsewhere;
  for (const Key& key : schema.keys) {
    const int distance = EditDistance(leaf, key.leaf);
    if (distance >= best) continue;
    best = distance;
    elsewhere = fmt::format("; did you mean '{}' {}?", key.leaf, Place(key.section));
  }
  return elsewhere.empty() ? near : elsewhere;
}

struct Faults {
  std::vector<std::pair<int64_t, std::string>> list;
  void Add(int64_t line, std::string text) { list.emplace_back(line, std::move(text)); }
};

struct Assignment {
  Key* key;
  Value value;
  std::string where;
};

// Walks `table` of `section`; fills faults or assignments. `where(line)` is the origin in words.
void Collect(Schema& schema, const Node& table, const std::string& section,
             const std::function<std::string(int64_t)>& where, Faults& faults, std::vector<Assignment>& assignments) {
  for (const auto& [leaf, node] : table.keys) {
    const std::string full = Join(section, leaf);
    const bool is_section = std::find(schema.sections.begin(), schema.sections.end(), full) != schema.sections.end() ||
                            std::any_of(schema.sections.begin(), schema.sections.end(),
                                        [&](const std::string& s) { return s.rfind(full + ".", 0) == 0; });
    const auto found = schema.index.find(full);
    if (found != schema.index.end()) {
      Key& key = schema.keys[found->second];
      try {
        assignments.push_back({&key, Convert(key, node), where(node.line)});
      } catch (const UserError& error) {
        faults.Add(node.line, fmt::format("{}: {}: {}", where(node.line), full, error.what()));
      }
    } else if (is_section && node.kind == Node::Kind::kTable) {
      Collect(schema, node, full, where, faults, assignments);
    } else if (is_section) {
      faults.Add(node.line, fmt::format("{}: '{}' is a section, not a key; write [{}] and its keys below it",
                                        where(node.line), Printable(full), Printable(full)));
    } else {
      faults.Add(node.line, fmt::format("{}: unknown {} '{}'{}", where(node.line),
                                        node.kind == Node::Kind::kTable ? "section" : "key", Printable(full, 120),
                                        Suggestion(schema, section, leaf)));
    }
  }
}

void Load(Schema& schema, const Node& table, const std::function<std::string(int64_t)>& where) {
  Faults faults;
  std::vector<Assignment> assignments;
  Collect(schema, table, "", where, faults, assignments);
  if (!faults.list.empty()) {
    std::stable_sort(faults.list.begin(), faults.list.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text;
    for (size_t i = 0; i < faults.list.size() && i < kMaxFaults; ++i) text += (i ? "\n" : "") + faults.list[i].second;
    if (faults.list.size() > kMaxFaults) text += fmt::format("\n... and {} more", faults.list.size() - kMaxFaults);
    throw UserError("{}", text);
  }
  for (Assignment& a : assignments) {
    a.key->assign(a.value);
    a.key->where = std::move(a.where);
  }
}

std::string Origin(const Key& key) { return key.where.empty() ? "default" : key.where; }

}  // namespace

const Key* Schema::Find(std::string_view full_name) const {
  const auto found = index.find(full_name);
  return found == index.end() ? nullptr : &keys[found->second];
}

const Key& Schema::Get(std::string_view full_name) const {
  const Key* key = Find(full_name);
  PENSTOCK_CHECK(key != nullptr, "config: '{}' is not declared", full_name);
  return *key;
}

std::vector<const Key*> Schema::KeysOf(std::string_view section) const {
  std::vector<const Key*> out;
  for (const Key& key : keys)
    if (key.section == section) out.push_back(&key);
  return out;
}

void Section::Help(std::string_view text) { schema_->section_help[name_] = std::string(text); }

void Section::Bool(std::string_view name, bool* value, Options options) {
  Bind<bool>(*schema_, MakeKey(name_, name, Type::kBool, std::move(options)), value);
}

void Section::Int(std::string_view name, int64_t* value, IntOptions options) {
  Bind<int64_t>(*schema_, MakeKey(name_, name, Type::kInt, std::move(options)), value);
}

void Section::Int(std::string_view name, int32_t* value, IntOptions options) {
  Bind<int64_t>(*schema_, MakeKey(name_, name, Type::kInt, Narrowed(std::move(options))), value);
}

void Section::Bytes(std::string_view name, int64_t* value, IntOptions options) {
  options.min = options.min.value_or(0);
  if (options.unit.empty()) options.unit = "bytes";
  Bind<int64_t>(*schema_, MakeKey(name_, name, Type::kBytes, std::move(options)), value);
}

void Section::Real(std::string_view name, double* value, RealOptions options) {
  Bind<double>(*schema_, MakeKey(name_, name, Type::kReal, std::move(options)), value);
}

void Section::String(std::string_view name, std::string* value, StringOptions options) {
  Bind<std::string>(*schema_, MakeKey(name_, name, Type::kString, std::move(options)), value);
}

void Section::IntList(std::string_view name, std::vector<int64_t>* value, IntOptions options) {
  Bind<std::vector<int64_t>>(*schema_, MakeKey(name_, name, Type::kIntList, std::move(options)), value);
}

void Section::IntList(std::string_view name, std::vector<int32_t>* value, IntOptions options) {
  Key key = MakeKey(name_, name, Type::kIntList, Narrowed(std::move(options)));
  key.read = [value]() -> Value { return std::vector<int64_t>(value->begin(), value->end()); };
  key.assign = [value](const Value& v) {
    value->clear();
    for (const int64_t x : std::get<std::vector<int64_t>>(v)) value->push_back(static_cast<int32_t>(x));
  };
  AddKey(*schema_, std::move(key));
}

void Section::RealList(std::string_view name, std::vector<double>* value, RealOptions options) {
  Bind<std::vector<double>>(*schema_, MakeKey(name_, name, Type::kRealList, std::move(options)), value);
}

void Section::StringList(std::string_view name, std::vector<std::string>* value, StringOptions options) {
  Bind<std::vector<std::string>>(*schema_, MakeKey(name_, name, Type::kStringList, std::move(options)), value);
}

void Section::DeclareText(std::string_view name, StringOptions options, std::function<std::string()> read,
                          std::function<void(const std::string&)> assign) {
  Key key = MakeKey(name_, name, Type::kString, std::move(options));
  key.read = [read = std::move(read)]() -> Value { return read(); };
  key.assign = [assign = std::move(assign)](const Value& value) { assign(std::get<std::string>(value)); };
  AddKey(*schema_, std::move(key));
}

void Section::Require(std::vector<std::string> keys, std::function<std::string()> complaint) {
  for (std::string& key : keys) key = Join(name_, key);
  schema_->requirements.push_back({std::move(keys), std::move(complaint)});
}

Section Section::Sub(std::string_view name) {
  PENSTOCK_CHECK(IsKeyName(name), "config: '{}' is no name for a section", name);
  EnsureSection(*schema_, Join(name_, name));
  return Section(schema_, Join(name_, name));
}

Config::Config() : schema_(std::make_unique<Schema>()) {}
Config::~Config() = default;
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;

void Config::Add(std::string_view name, const std::function<void(Section&)>& declare) {
  PENSTOCK_CHECK(name.empty() || IsKeyName(name), "config: '{}' is no name for a section", name);
  EnsureSection(*schema_, std::string(name));
  Section section(schema_.get(), std::string(name));
  declare(section);
}

void Config::LoadFile(const std::string& path) { LoadText(ReadFile(path), path); }

void Config::LoadText(std::string_view toml, const std::string& name) {
  Load(*schema_, ParseToml(toml, name), [&](int64_t line) { return fmt::format("{}:{}", name, line); });
}

void Config::Set(std::string_view assignment) {
  const std::string origin = "--set " + Printable(assignment, 120);
  const auto trimmed = [](std::string_view text) {
    const size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return std::string_view();
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  };
  const size_t equals = assignment.find('=');
  const std::string_view name = trimmed(assignment.substr(0, equals));
  if (equals == std::string_view::npos || name.empty())
    throw UserError("{}: write section.key=value, for example train.steps=5", origin);
  const std::string_view text = trimmed(assignment.substr(equals + 1));
  const auto found = schema_->index.find(name);
  if (found == schema_->index.end()) {
    const size_t dot = name.rfind('.');
    const std::string_view section = dot == std::string_view::npos ? "" : name.substr(0, dot);
    throw UserError("{}: unknown key '{}'{}", origin, Printable(name, 120),
                    Suggestion(*schema_, section, dot == std::string_view::npos ? name : name.substr(dot + 1)));
  }
  Key& key = schema_->keys[found->second];
  Node node;
  bool parsed = false;
  try {
    Node table = ParseToml(fmt::format("x = {}", text), origin);
    parsed = table.keys.size() == 1 && table.keys[0].first == "x";
    if (parsed) node = std::move(table.keys[0].second);
  } catch (const UserError&) {  // not TOML: a bare string
  }
  const bool bare_string = key.type == Type::kString && node.kind != Node::Kind::kString;
  if (!parsed || bare_string) {
    node = Node();
    node.kind = Node::Kind::kString;
    node.text = std::string(text);
  }
  try {
    key.assign(Convert(key, node));
  } catch (const UserError& error) {
    throw UserError("{}: {}: {}", origin, name, error.what());
  }
  key.where = origin;
}

void Config::Finish() {
  std::string text;
  const auto add = [&](const std::string& fault) { text += (text.empty() ? "" : "\n") + fault; };
  for (const Key& key : schema_->keys) {
    if (key.required && key.where.empty() && key.HasEffect())
      add(fmt::format("{} is not set and has no default ({}); set it in section [{}] or with --set {}=...",
                      key.FullName(), key.help, key.section, key.FullName()));
    if (!key.where.empty() && !key.HasEffect())
      add(fmt::format("{}: {} has no effect here: it is used only if {}; remove it", key.where, key.FullName(),
                      key.only_if_text));
  }
  if (text.empty()) {
    for (const Requirement& requirement : schema_->requirements) {
      const std::string complaint = requirement.complaint();
      if (complaint.empty()) continue;
      std::string keys;
      for (const std::string& name : requirement.keys) {
        const Key& key = schema_->Get(name);
        keys += fmt::format("{}{} = {} ({})", keys.empty() ? "" : ", ", name, TomlValue(key.read()), Origin(key));
      }
      add(fmt::format("{}: {}", keys, complaint));
    }
  }
  if (!text.empty()) throw UserError("{}", text);
}

bool Config::IsSet(std::string_view key) const { return !schema_->Get(key).where.empty(); }

std::string Config::Where(std::string_view key) const { return Origin(schema_->Get(key)); }

void Config::Fail(std::string_view key, std::string_view message) const {
  const Key& k = schema_->Get(key);
  throw UserError("{}: {} = {}: {}", Origin(k), key, TomlValue(k.read()), message);
}

}  // namespace penstock::config
