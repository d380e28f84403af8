#include "tokenizer/files/settings.h"

#include "tokenizer/files/json.h"

namespace penstock::tokenizer {
namespace {

// A token is its text, or an object with the text in it.
std::optional<std::string> TokenIn(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && (*found)["content"].is_string())
    return (*found)["content"].get<std::string>();
  return std::nullopt;
}

}  // namespace

TokenizerSettings ReadTokenizerSettings(const std::string& folder) {
  TokenizerSettings settings;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::string path = folder + "/" + name;
    if (!FileSystem::Real().Exists(path)) continue;
    settings.files.push_back({name, ReadFile(path)});
    const nlohmann::json object = ParseJsonObject(settings.files.back().content, path);
    if (!settings.end_of_text) settings.end_of_text = TokenIn(object, "eos_token");
    if (!settings.beginning_of_text) settings.beginning_of_text = TokenIn(object, "bos_token");
    const auto add = object.find("add_bos_token");
    if (add != object.end() && add->is_boolean()) settings.add_beginning = add->get<bool>();
  }
  return settings;
}

const std::vector<std::string>& UsualEndsOfText() {
  static const std::vector<std::string> kTexts = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                                  "<|eos|>",       "<|im_end|>",      "[EOS]"};
  return kTexts;
}

}  // namespace penstock::tokenizer
