// src/huggingface/json_fields.h
//
// Typed fields of a JSON object with errors that name file and key. A key that is not there and one that is null are
// the same.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace penstock::huggingface {

// A whole file. UserError when it is larger than `most` bytes, as no `what` is.
std::string ReadText(const std::string& path, int64_t most, std::string_view what, FileSystem& files);

// UserError when the text is no JSON object, is nested too deep (base/json_depth.h), or a key appears twice in it (at
// any depth).
nlohmann::json ParseJsonObject(std::string_view text, const std::string& file);

// The value for a message: its beginning, when it is long.
std::string Shown(const nlohmann::json& value);

class JsonFields {
 public:
  // `prefix` is put before keys in messages ("rope_scaling."). `object` must outlive it and be an object.
  JsonFields(const nlohmann::json& object, std::string file, std::string prefix = "");

  bool empty() const { return object_.empty(); }
  bool Has(const char* key) const { return Find(key) != nullptr; }
  bool IsNull(const char* key) const;  // it is there, and is null
  // Whole numbers in [0, 2^53]; 12.0 is one.
  std::optional<int64_t> Int(const char* key) const;
  // A whole number in [1, most].
  std::optional<int64_t> Count(const char* key, int64_t most) const;
  // A number above 0.
  std::optional<double> Positive(const char* key) const;
  std::optional<double> Real(const char* key) const;
  // null is false, as in Python.
  std::optional<bool> Bool(const char* key) const;
  std::optional<std::string> Text(const char* key) const;
  std::optional<JsonFields> Object(const char* key) const;

  // UserError when it is not there.
  int64_t RequiredCount(const char* key, int64_t most) const;
  double RequiredPositive(const char* key) const;
  // "config.json: 'n_layer' = 3: " and the message.
  [[noreturn]] void Fail(const char* key, const std::string& message) const;

 private:
  const nlohmann::json* Find(const char* key) const;  // null: not there
  void Require(const char* key) const;

  const nlohmann::json& object_;
  std::string file_, prefix_;
};

}  // namespace penstock::huggingface
