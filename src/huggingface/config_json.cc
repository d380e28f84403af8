#include "huggingface/config_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "huggingface/json_fields.h"

namespace penstock::huggingface {
namespace {

using model::GptConfig;

constexpr const char* kTypes = "gpt2, llama and mistral are known";

void RequireText(const JsonFields& fields, const char* key, std::initializer_list<const char*> supported) {
  const auto value = fields.Text(key);
  if (!value || std::find(supported.begin(), supported.end(), *value) != supported.end()) return;
  fields.Fail(key, fmt::format("is not supported; {} is", fmt::join(supported, " or ")));
}

void RequireBool(const JsonFields& fields, const char* key, bool supported) {
  if (fields.Bool(key).value_or(supported) != supported)
    fields.Fail(key, fmt::format("is not supported; {} is", supported));
}

void RequireDivisor(const JsonFields& fields, const char* key, int64_t value, const char* of_key, int64_t of) {
  if (of % value != 0) fields.Fail(key, fmt::format("does not divide '{}' = {}", of_key, of));
}

// The published weights were trained with dropout; the logits do not depend on it.
void NoteDropout(const JsonFields& fields, const char* key, const char* ours, ImportedConfig& imported) {
  const double dropout = fields.Real(key).value_or(0);
  if (dropout != 0)
    imported.notes.push_back(fmt::format("'{}' = {} is not taken over; {} sets it for training", key, dropout, ours));
}

void ReadGpt2(const JsonFields& fields, ImportedConfig& imported) {
  GptConfig& c = imported.model;
  c.family = "gpt2";
  c.layers = fields.RequiredCount("n_layer", model::kMaxLayers);
  c.hidden = fields.RequiredCount("n_embd", model::kMaxHidden);
  c.heads = fields.RequiredCount("n_head", model::kMaxHidden);
  RequireDivisor(fields, "n_head", c.heads, "n_embd", c.hidden);
  c.vocabulary = fields.RequiredCount("vocab_size", model::kMaxVocabulary);
  c.context = fields.RequiredCount(!fields.Has("n_positions") && fields.Has("n_ctx") ? "n_ctx" : "n_positions",
                                   model::kMaxContext);
  c.ffn = fields.Count("n_inner", model::kMaxFfn).value_or(4 * c.hidden);
  c.norm_eps = fields.Positive("layer_norm_epsilon").value_or(1e-5);
  c.init_std = fields.Positive("initializer_range").value_or(0.02);
  c.tied = fields.Bool("tie_word_embeddings").value_or(true);
  if (!fields.Has("activation_function") && fields.Has("activation"))
    fields.Fail("activation", "is not known for gpt2");
  RequireText(fields, "activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  RequireBool(fields, "scale_attn_weights", true);
  RequireBool(fields, "scale_attn_by_inverse_layer_idx", false);
  RequireBool(fields, "add_cross_attention", false);
  NoteDropout(fields, "embd_pdrop", "model.dropout", imported);
  NoteDropout(fields, "resid_pdrop", "model.dropout", imported);
  NoteDropout(fields, "attn_pdrop", "model.attention_dropout", imported);
}

void RequireAllRotated(const JsonFields& fields) {
  if (fields.Real("partial_rotary_factor").value_or(1) != 1)
    fields.Fail("partial_rotary_factor", "is not supported; all channels of a head are rotated");
}

// transformers 4 has "rope_theta" and "rope_scaling", transformers 5 one "rope_parameters". Where both are, both
// versions follow "rope_scaling", unless it is empty.
void ReadRope(const JsonFields& fields, GptConfig& c) {
  c.rope_base = fields.Positive("rope_theta").value_or(10000.0);
  RequireAllRotated(fields);
  const auto scaling = fields.Object("rope_scaling");
  const auto rope = scaling && !scaling->empty() ? scaling : fields.Object("rope_parameters");
  if (!rope) return;
  c.rope_base = rope->Positive("rope_theta").value_or(c.rope_base);
  RequireAllRotated(*rope);
  const char* const type_key = rope->Has("rope_type") ? "rope_type" : "type";
  const std::string type = rope->Text(type_key).value_or("default");
  if (type == "default") return;
  if (type != "linear" && type != "llama3") rope->Fail(type_key, "is not supported; default, linear and llama3 are");
  c.rope_scaling = type;
  c.rope_factor = rope->RequiredPositive("factor");
  if (type == "linear") return;
  c.rope_low_frequency = rope->RequiredPositive("low_freq_factor");
  c.rope_high_frequency = rope->RequiredPositive("high_freq_factor");
  if (!(c.rope_low_frequency < c.rope_high_frequency))
    rope->Fail("low_freq_factor", fmt::format("must be below 'high_freq_factor' = {}", c.rope_high_frequency));
  const char* const original = "original_max_position_embeddings";
  c.rope_original_context = rope->RequiredCount(original, INT64_MAX);
  // Beside the object it counts for transformers 5 and not for 4.
  if (const auto beside = fields.Int(original); beside && *beside != c.rope_original_context)
    fields.Fail(original, fmt::format("is not {}, as in the description of RoPE", c.rope_original_context));
}

void ReadLlama(const JsonFields& fields, bool mistral, ImportedConfig& imported) {
  GptConfig& c = imported.model;
  c.family = "llama";
  c.layers = fields.RequiredCount("num_hidden_layers", model::kMaxLayers);
  c.hidden = fields.RequiredCount("hidden_size", model::kMaxHidden);
  c.heads = fields.RequiredCount("num_attention_heads", model::kMaxHidden);
  RequireDivisor(fields, "num_attention_heads", c.heads, "hidden_size", c.hidden);
  const int64_t dim = c.hidden / c.heads;
  if (const auto given = fields.Int("head_dim"); given && *given != dim)
    fields.Fail("head_dim", fmt::format("is not supported; hidden_size / num_attention_heads = {} is", dim));
  if (dim % 2 != 0)
    fields.Fail("num_attention_heads",
                fmt::format("makes heads of {} channels; RoPE rotates pairs, so it must be even", dim));
  const bool eight = mistral && !fields.IsNull("num_key_value_heads");
  c.kv_heads = fields.Count("num_key_value_heads", model::kMaxHidden).value_or(eight ? 8 : c.heads);
  RequireDivisor(fields, "num_key_value_heads", c.kv_heads, "num_attention_heads", c.heads);
  c.ffn = fields.RequiredCount("intermediate_size", model::kMaxFfn);
  c.vocabulary = fields.RequiredCount("vocab_size", model::kMaxVocabulary);
  c.context = fields.Count("max_position_embeddings", model::kMaxContext).value_or(mistral ? 131072 : 2048);
  c.norm_eps = fields.Positive("rms_norm_eps").value_or(1e-6);
  c.init_std = fields.Positive("initializer_range").value_or(0.02);
  c.tied = fields.Bool("tie_word_embeddings").value_or(false);
  RequireText(fields, "hidden_act", {"silu", "swish"});
  RequireBool(fields, "attention_bias", false);
  RequireBool(fields, "mlp_bias", false);
  ReadRope(fields, c);
  // transformers takes a window of 4096 for a mistral that does not say, and none for "null".
  if (mistral && fields.Int("sliding_window").value_or(c.context) < c.context)
    fields.Fail("sliding_window", fmt::format("is not supported where it is below max_position_embeddings = {}; null "
                                              "is",
                                              c.context));
  NoteDropout(fields, "attention_dropout", "model.attention_dropout", imported);
}

nlohmann::ordered_json IdsJson(const std::vector<int64_t>& ids) {
  if (ids.size() == 1) return ids.front();
  return ids;
}

std::vector<int64_t> ReadIds(const nlohmann::json& value, const std::string& where) {
  constexpr size_t kMost = 64;
  std::vector<int64_t> ids;
  const auto add = [&](const nlohmann::json& id) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      throw UserError("{} = {}: a token id, or a list of them, was expected", where, Shown(value));
    ids.push_back(id.get<int64_t>());
  };
  if (value.is_array() && value.size() <= kMost)
    for (const nlohmann::json& id : value) add(id);
  else
    add(value);
  return ids;
}

}  // namespace

std::string FormatIds(const std::vector<int64_t>& ids) { return IdsJson(ids).dump(); }

std::vector<int64_t> ParseIds(std::string_view text, const std::string& where) {
  return ReadIds(nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false), where);
}

ImportedConfig ParseConfigJson(std::string_view text, const std::string& file) {
  const nlohmann::json json = ParseJsonObject(text, file);
  const JsonFields fields(json, file);
  const auto type = fields.Text("model_type");
  if (!type) throw UserError("{}: 'model_type' is missing; {}", file, kTypes);
  if (fields.Has("quantization_config"))
    throw UserError("{}: 'quantization_config': quantised weights are not supported; use the weights they were made of",
                    file);
  ImportedConfig imported;
  if (*type == "gpt2") {
    ReadGpt2(fields, imported);
  } else if (*type == "llama") {
    ReadLlama(fields, false, imported);
  } else if (*type == "mistral") {
    if (!json.contains("sliding_window"))
      throw UserError("{}: 'sliding_window' is missing, which means a window of 4096; only null is supported", file);
    ReadLlama(fields, true, imported);
    imported.notes.emplace_back("a mistral without sliding window is computed, and written again, as a llama");
  } else {
    fields.Fail("model_type", std::string("is not supported; ") + kTypes);
  }
  for (const char* key : kSpecialIds)
    if (const auto value = json.find(key); value != json.end() && !value->is_null())
      imported.special_ids[key] = ReadIds(*value, fmt::format("{}: '{}'", file, key));
  try {
    imported.model = model::ResolveGptConfig(imported.model);
  } catch (const UserError& error) {
    throw UserError("{}: {}", file, error.what());
  }
  return imported;
}

std::string FormatConfigJson(const GptConfig& config, const ConfigJsonOptions& options) {
  const GptConfig c = model::ResolveGptConfig(config);
  const bool gpt2 = c.family == "gpt2";
  nlohmann::ordered_json json;
  json["architectures"] = {gpt2 ? "GPT2LMHeadModel" : "LlamaForCausalLM"};
  json["model_type"] = c.family;
  json["vocab_size"] = c.vocabulary;
  if (gpt2) {
    json["n_layer"] = c.layers;
    json["n_embd"] = c.hidden;
    json["n_head"] = c.heads;
    json["n_inner"] = c.ffn;
    json["n_positions"] = c.context;
    json["n_ctx"] = c.context;
    json["layer_norm_epsilon"] = c.norm_eps;
    json["activation_function"] = "gelu_new";
    json["embd_pdrop"] = c.dropout;
    json["resid_pdrop"] = c.dropout;
    json["attn_pdrop"] = c.attention_dropout;
  } else {
    json["num_hidden_layers"] = c.layers;
    json["hidden_size"] = c.hidden;
    json["num_attention_heads"] = c.heads;
    json["num_key_value_heads"] = c.kv_heads;
    json["head_dim"] = c.head_dim();
    json["intermediate_size"] = c.ffn;
    json["max_position_embeddings"] = c.context;
    json["rms_norm_eps"] = c.norm_eps;
    json["hidden_act"] = "silu";
    json["attention_bias"] = false;
    json["mlp_bias"] = false;
    json["attention_dropout"] = c.attention_dropout;
    // Both spellings: each major version of transformers reads its own.
    nlohmann::ordered_json rope = {{"rope_type", c.rope_scaling == "none" ? "default" : c.rope_scaling}};
    if (c.rope_scaling != "none") rope["factor"] = c.rope_factor;
    if (c.rope_scaling == "llama3") {
      rope["low_freq_factor"] = c.rope_low_frequency;
      rope["high_freq_factor"] = c.rope_high_frequency;
      rope["original_max_position_embeddings"] = c.rope_original_context;
    }
    json["rope_theta"] = c.rope_base;
    json["rope_scaling"] = c.rope_scaling == "none" ? nlohmann::ordered_json() : rope;
    rope["rope_theta"] = c.rope_base;
    json["rope_parameters"] = rope;
  }
  json["initializer_range"] = c.init_std;
  json["tie_word_embeddings"] = c.tied;
  json["torch_dtype"] = options.dtype;
  json["dtype"] = options.dtype;
  // Said even when there is none: the defaults of the library are those of published models.
  json["bos_token_id"] = nullptr;
  json["eos_token_id"] = nullptr;
  for (const auto& [key, ids] : options.special_ids) json[key] = IdsJson(ids);
  return json.dump(2) + "\n";
}

}  // namespace penstock::huggingface
