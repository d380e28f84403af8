// The printed forms of a configuration: resolved TOML, JSON and the documentation.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/config/schema.h"
#include "base/error.h"

namespace penstock::config {
namespace {

using Json = nlohmann::ordered_json;

std::string Quoted(std::string_view text) {
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

// Shortest text that reads back as the same number, and as a real.
std::string RealText(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string ElementText(int64_t value) { return fmt::format("{}", value); }
std::string ElementText(double value) { return RealText(value); }
std::string ElementText(const std::string& value) { return Quoted(value); }

Json RealJson(double value) { return std::isfinite(value) ? Json(value) : Json(RealText(value)); }

Json ToJson(const Value& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, double>) {
          return RealJson(v);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          Json list = Json::array();
          for (const double x : v) list.push_back(RealJson(x));
          return list;
        } else {
          return Json(v);
        }
      },
      value);
}

// A cell of a markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string TomlValue(const Value& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> ||
                             std::is_same_v<T, std::string>) {
          return ElementText(v);
        } else {
          std::string out = "[";
          for (size_t i = 0; i < v.size(); ++i) out += (i ? ", " : "") + ElementText(v[i]);
          return out + "]";
        }
      },
      value);
}

std::string Config::ResolvedToml() const {
  std::string out = "# Resolved configuration: every key with its value.\n";
  for (const std::string& section : schema_->sections) {
    out += section.empty() ? "\n" : fmt::format("\n[{}]\n", section);
    for (const Key* key : schema_->KeysOf(section)) {
      std::string note = key->help;
      if (!key->unit.empty()) note += fmt::format(" [{}]", key->unit);
      std::string assignment = fmt::format("{} = {}", key->leaf, TomlValue(key->read()));
      if (!key->HasEffect()) {
        assignment = "# " + assignment;
        note += fmt::format("; no effect: only if {}", key->only_if_text);
      } else if (key->where.empty()) {
        // A required key without a value must be asked for again when this text is loaded.
        if (key->required) assignment = "# " + assignment;
        note += key->required ? "; required" : "; default";
      } else {
        note += fmt::format("; set at {}", key->where);
        if (!key->required) note += fmt::format(", default {}", TomlValue(key->default_value));
      }
      out += fmt::format("{:<32}  # {}\n", assignment, Printable(note, 1000));
    }
  }
  return out;
}

nlohmann::ordered_json Config::Json() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const Key& key : schema_->keys) {
    nlohmann::ordered_json* place = &out;
    std::string_view section = key.section;
    while (!section.empty()) {
      const size_t dot = section.find('.');
      place = &(*place)[std::string(section.substr(0, dot))];
      section = dot == std::string_view::npos ? "" : section.substr(dot + 1);
    }
    (*place)[key.leaf] = ToJson(key.read());
  }
  return out;
}

nlohmann::ordered_json Config::DescribeJson() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Key& key : schema_->keys) {
    out.push_back({{"name", key.FullName()},
                   {"type", TypeName(key.type)},
                   {"default", key.required ? nlohmann::ordered_json() : ToJson(key.default_value)},
                   {"required", key.required},
                   {"unit", key.unit},
                   {"bound", BoundText(key)},
                   {"only_if", key.only_if_text},
                   {"help", key.help}});
  }
  return out;
}

std::string Config::MarkdownDocs() const {
  std::string out =
      "# Configuration keys\n\n"
      "Generated by `penstock config --markdown` from the declarations in the code; a test compares the two.\n"
      "A key that is misspelt, has the wrong type, is out of bounds or has no effect is an error.\n";
  for (const std::string& section : schema_->sections) {
    const std::vector<const Key*> keys = schema_->KeysOf(section);
    if (keys.empty()) continue;
    out += section.empty() ? "\n## Top level\n\n" : fmt::format("\n## [{}]\n\n", section);
    if (const auto help = schema_->section_help.find(section); help != schema_->section_help.end())
      out += help->second + "\n\n";
    out += "| key | type | default | unit | bound | only if | meaning |\n|---|---|---|---|---|---|---|\n";
    for (const Key* key : keys) {
      const std::string value = key->required ? "required" : fmt::format("`{}`", TomlValue(key->default_value));
      out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", key->leaf, TypeName(key->type), Cell(value),
                         Cell(key->unit), Cell(BoundText(*key)), Cell(key->only_if_text), Cell(key->help));
    }
  }
  return out;
}

}  // namespace penstock::config
