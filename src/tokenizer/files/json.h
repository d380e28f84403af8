// src/tokenizer/files/json.h
//
// Reading JSON that others wrote: every surprise is a UserError with the file and the key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json_depth.h"

namespace penstock::tokenizer {

using Json = nlohmann::json;

inline Json ParseJsonObject(std::string_view text, const std::string& path) {
  if (IsNestedDeeper(text)) throw UserError("{} is no tokenizer: nested deeper than {}", path, kMaxJsonDepth);
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw UserError("{} is no JSON: {}", path, error.what());
  }
  if (!json.is_object()) throw UserError("{} is JSON, but no object", path);
  return json;
}

// A value of `object` under `key`. `where` names the object in messages.
template <typename Value>
Value Get(const Json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw UserError("{}: there is no '{}'", where, key);
  try {
    return found->get<Value>();
  } catch (const Json::exception&) {
    throw UserError("{}: '{}' is of the wrong type", where, key);
  }
}

// ... where missing or null means `otherwise`.
template <typename Value>
Value GetOr(const Json& object, const char* key, Value otherwise, const std::string& where) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? otherwise : Get<Value>(object, key, where);
}

// The object or array under `key`; a null one where there is none.
inline const Json& Member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

// What kind of step it is ("type").
inline std::string TypeOf(const Json& step, const std::string& where) {
  if (!step.is_object()) throw UserError("{} is no object", where);
  return Get<std::string>(step, "type", where);
}

}  // namespace penstock::tokenizer
