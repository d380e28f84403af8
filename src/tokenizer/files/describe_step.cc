#include "tokenizer/files/describe_step.h"

#include "tokenizer/bpe/scanner.h"

namespace penstock::tokenizer {
namespace {

std::string NameOfPattern(const std::string& regex) {
  const auto known = FindScanPattern(regex);
  if (!known) return "pattern " + regex;
  return *known == ScanPattern::kGpt2     ? "pattern of gpt2"
         : *known == ScanPattern::kLlama3 ? "pattern of llama3"
                                          : "pattern of qwen2";
}

std::string DescribeSetting(const std::string& key, const Json& value) {
  if (key == "pattern" && value.is_object() && value.contains("Regex") && value["Regex"].is_string())
    return NameOfPattern(value["Regex"].get<std::string>());
  if (key == "pattern" && value.is_object() && value.contains("String") && value["String"].is_string())
    return fmt::format("'{}'", value["String"].get<std::string>());
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return fmt::format("{} {}", key, value.is_string() && text.find(' ') != std::string::npos ? "'" + text + "'" : text);
}

}  // namespace

std::string DescribeStep(const Json& step) {
  if (!step.is_object()) return "none";
  std::string text, settings;
  for (const char* key : {"normalizers", "pretokenizers", "decoders"})
    if (step.contains(key) && step[key].is_array()) {
      for (const Json& one : step[key]) text += (text.empty() ? "" : ", then ") + DescribeStep(one);
      return text.empty() ? "none" : text;
    }
  if (step.value("type", "") == "ByteLevel") {
    if (step.value("add_prefix_space", true)) text = "a space put before every piece, ";
    if (step.value("use_regex", true)) text += "pattern of gpt2, ";
    return text + "ByteLevel";
  }
  for (const auto& [key, value] : step.items()) {
    // What is off says nothing.
    if (key == "type" || value.is_null() || value == false) continue;
    settings += (settings.empty() ? "" : ", ") + DescribeSetting(key, value);
  }
  return step.value("type", "?") + (settings.empty() ? "" : "(" + settings + ")");
}

}  // namespace penstock::tokenizer
