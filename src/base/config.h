// src/base/config.h
//
// Configuration: TOML, declared once in code. A struct declares its keys (type, default, bound, unit, help); from that
// one declaration the configuration is parsed, checked, printed resolved and documented (docs/config.md).
//
//   struct TrainConfig {
//     int64_t steps = 100;                       // the member's value at declaration time is the default
//     double momentum = 0.9;
//     std::string optimizer = "adamw";
//     void Declare(config::Section& s) {
//       s.Help("The training loop.");
//       s.Int("steps", &steps, {.min = 1, .help = "updates to make", .unit = "steps"});
//       s.String("optimizer", &optimizer, {.choices = {"adamw", "sgd"}, .help = "which optimizer"});
//       s.Real("momentum", &momentum, {.min = 0.0, .below = 1.0, .help = "decay of the velocity",
//              .only_if = [this] { return optimizer == "sgd"; }, .only_if_text = "train.optimizer = 'sgd'"});
//     }
//   };
//   config::Config root;
//   root.Add("train", [&](config::Section& s) { train.Declare(s); });
//   root.LoadFile("gpt.toml");
//   root.Set("train.steps=5");
//   root.Finish();
//
// What the user gets wrong is a UserError that names file and line (or the --set), the key and what would work:
// unknown keys (with the nearest one, or the section a misplaced key belongs to), duplicate keys, wrong types, values
// out of bounds, and keys that are set but have no effect. All faults of one file come in one message, one per line.
//
// Ownership: variables and closures must outlive the Config. Units: as declared. Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::config {

// Options of keys. `only_if`: the key has an effect only when it returns true (asked in Finish); setting it otherwise
// is an error, and `only_if_text` is the condition in words. `required`: there is no default.
struct Options {
  std::string help{};
  std::string unit{};
  bool required = false;
  std::function<bool()> only_if{};
  std::string only_if_text{};
};
// min <= value <= max.
struct IntOptions {
  std::optional<int64_t> min{};
  std::optional<int64_t> max{};
  std::string help{};
  std::string unit{};
  bool required = false;
  std::function<bool()> only_if{};
  std::string only_if_text{};
};
// min <= value <= max, above < value < below. Not-a-number is always refused, infinities unless allowed.
struct RealOptions {
  std::optional<double> min{};
  std::optional<double> above{};
  std::optional<double> max{};
  std::optional<double> below{};
  bool allow_infinite = false;
  std::string help{};
  std::string unit{};
  bool required = false;
  std::function<bool()> only_if{};
  std::string only_if_text{};
};
// choices: the only values, when not empty.
struct StringOptions {
  std::vector<std::string> choices{};
  std::string help{};
  std::string unit{};
  bool required = false;
  std::function<bool()> only_if{};
  std::string only_if_text{};
};

using Value = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                           std::vector<std::string>>;

struct Schema;  // src/base/config/schema.h

// Where a struct declares its keys. Names are lower case words with underscores. Bounds and choices of a list hold for
// each element.
class Section {
 public:
  Section(Schema* schema, std::string name) : schema_(schema), name_(std::move(name)) {}

  // One or two sentences for the documentation.
  void Help(std::string_view text);

  void Bool(std::string_view name, bool* value, Options options = {});
  void Int(std::string_view name, int64_t* value, IntOptions options = {});
  void Int(std::string_view name, int32_t* value, IntOptions options = {});
  // An integer, or a text with a unit: "64 MiB", "1.5 GB" (base/units.h). The value is in bytes.
  void Bytes(std::string_view name, int64_t* value, IntOptions options = {});
  void Real(std::string_view name, double* value, RealOptions options = {});
  void String(std::string_view name, std::string* value, StringOptions options = {});
  void IntList(std::string_view name, std::vector<int64_t>* value, IntOptions options = {});
  void IntList(std::string_view name, std::vector<int32_t>* value, IntOptions options = {});
  void RealList(std::string_view name, std::vector<double>* value, RealOptions options = {});
  void StringList(std::string_view name, std::vector<std::string>* value, StringOptions options = {});
  // A string key whose choices are the names of an enumeration's values.
  template <typename E>
  void Enum(std::string_view name, E* value, std::vector<std::pair<std::string, E>> names, Options options = {});

  // A check over several keys (names inside this section), asked in Finish after all bounds: returns the complaint,
  // or "" when all is well. The error says where each of the keys was set.
  void Require(std::vector<std::string> keys, std::function<std::string()> complaint);

  // The section [name.sub].
  Section Sub(std::string_view name);

 private:
  void DeclareText(std::string_view name, StringOptions options, std::function<std::string()> read,
                   std::function<void(const std::string&)> assign);

  Schema* schema_;
  std::string name_;  // "" is the top level
};

class Config {
 public:
  Config();
  ~Config();
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;

  // Declares the section [name]; "" is the top level. Declare everything before loading.
  void Add(std::string_view name, const std::function<void(Section&)>& declare);

  // Reads TOML. A later load or Set overrides an earlier one. UserError as above; WorldError when the file cannot be
  // read although it is there.
  void LoadFile(const std::string& path);
  void LoadText(std::string_view toml, const std::string& name);
  // "section.key=value", the value in TOML syntax; a string may stand without quotes.
  void Set(std::string_view assignment);
  // Checks required keys, keys without effect and Require. Call once, after the last load and before use.
  void Finish();

  // Was the key set (by a file or Set)? Where: "gpt.toml:12", "--set train.steps=5" or "default". The key, given as
  // "train.steps", must be declared.
  bool IsSet(std::string_view key) const;
  std::string Where(std::string_view key) const;
  // For faults that only show later, in planning: UserError "WHERE: KEY = VALUE: MESSAGE".
  [[noreturn]] void Fail(std::string_view key, std::string_view message) const;

  // All keys with their values, as TOML that loads to the same values: help, unit and origin are comments, and keys
  // without effect are commented out.
  std::string ResolvedToml() const;
  // All values that have an effect or not, nested by section. Infinities are strings.
  nlohmann::ordered_json Json() const;
  // Every key as {name, type, default, unit, bound, only_if, help}.
  nlohmann::ordered_json DescribeJson() const;
  // The text of docs/config.md: a table per section.
  std::string MarkdownDocs() const;

 private:
  std::unique_ptr<Schema> schema_;
};

template <typename E>
void Section::Enum(std::string_view name, E* value, std::vector<std::pair<std::string, E>> names, Options options) {
  StringOptions text{.choices = {},
                     .help = std::move(options.help),
                     .unit = std::move(options.unit),
                     .required = options.required,
                     .only_if = std::move(options.only_if),
                     .only_if_text = std::move(options.only_if_text)};
  for (const auto& [choice, unused] : names) text.choices.push_back(choice);
  auto read = [value, names] {
    for (const auto& [choice, e] : names)
      if (e == *value) return choice;
    return std::string("?");
  };
  auto assign = [value, names](const std::string& choice) {
    for (const auto& [known, e] : names)
      if (known == choice) *value = e;
  };
  DeclareText(name, std::move(text), std::move(read), std::move(assign));
}

}  // namespace penstock::config
