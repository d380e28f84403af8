#include "huggingface/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_depth.h"

namespace penstock::huggingface {

using Json = nlohmann::json;

namespace {

// Cut between characters.
std::string Clipped(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0u) == 0x80u) --most;
  return text.substr(0, most) + "...";
}

}  // namespace

std::string Shown(const Json& value) { return Clipped(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60); }

std::string ReadText(const std::string& path, int64_t most, std::string_view what, FileSystem& files) {
  if (files.Open(path)->size() > most) throw UserError("{}: larger than any {}", path, what);
  return ReadFile(path, files);
}

Json ParseJsonObject(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> open;  // keys of the objects around the place
  std::string twice;
  if (IsNestedDeeper(text)) throw UserError("{}: nested deeper than {}", file, kMaxJsonDepth);
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second && twice.empty())
      twice = value.get<std::string>();
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, watch);
  } catch (const Json::exception& error) {
    throw UserError("{}: not valid JSON: {}", file, Clipped(error.what(), 300));
  }
  if (!json.is_object()) throw UserError("{}: holds no JSON object", file);
  if (!twice.empty()) throw UserError("{}: the key '{}' appears twice", file, twice);
  return json;
}

JsonFields::JsonFields(const Json& object, std::string file, std::string prefix)
    : object_(object), file_(std::move(file)), prefix_(std::move(prefix)) {}

const Json* JsonFields::Find(const char* key) const {
  const auto at = object_.find(key);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool JsonFields::IsNull(const char* key) const {
  const auto at = object_.find(key);
  return at != object_.end() && at->is_null();
}

std::optional<int64_t> JsonFields::Int(const char* key) const {
  const Json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : -1;
  if (!(number >= 0 && number <= 0x1p53 && number == std::floor(number))) Fail(key, "must be a whole number from 0");
  return static_cast<int64_t>(number);
}

std::optional<int64_t> JsonFields::Count(const char* key, int64_t most) const {
  const std::optional<int64_t> value = Int(key);
  if (value && (*value < 1 || *value > most)) Fail(key, fmt::format("must be at least 1 and at most {}", most));
  return value;
}

std::optional<double> JsonFields::Positive(const char* key) const {
  const std::optional<double> value = Real(key);
  if (value && !(*value > 0)) Fail(key, "must be above 0");
  return value;
}

std::optional<double> JsonFields::Real(const char* key) const {
  const Json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) Fail(key, "must be a number");
  return value->get<double>();
}

std::optional<bool> JsonFields::Bool(const char* key) const {
  if (IsNull(key)) return false;
  const Json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) Fail(key, "must be true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonFields::Text(const char* key) const {
  const Json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) Fail(key, "must be a text");
  return value->get<std::string>();
}

std::optional<JsonFields> JsonFields::Object(const char* key) const {
  const Json* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) Fail(key, "must be an object");
  return JsonFields(*value, file_, prefix_ + key + ".");
}

void JsonFields::Require(const char* key) const {
  if (!Has(key)) throw UserError("{}: '{}{}' is missing", file_, prefix_, key);
}

int64_t JsonFields::RequiredCount(const char* key, int64_t most) const {
  Require(key);
  return *Count(key, most);
}

double JsonFields::RequiredPositive(const char* key) const {
  Require(key);
  return *Positive(key);
}

void JsonFields::Fail(const char* key, const std::string& message) const {
  const Json* const value = Find(key);
  throw UserError("{}: '{}{}' = {}: {}", file_, prefix_, key, value == nullptr ? "missing" : Shown(*value), message);
}

}  // namespace penstock::huggingface
