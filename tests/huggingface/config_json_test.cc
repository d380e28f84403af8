#include "huggingface/config_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/json_depth.h"

namespace penstock::huggingface {
namespace {

using Json = nlohmann::json;
using model::GptConfig;

// With the required keys only.
Json Minimal(const std::string& type) {
  if (type == "gpt2")
    return Json::parse(R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 16, "n_head": 4,
      "vocab_size": 100, "n_positions": 32})");
  Json json = Json::parse(R"({"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 8,
      "intermediate_size": 24, "vocab_size": 100})");
  json["model_type"] = type;
  if (type == "mistral") json["sliding_window"] = nullptr;
  return json;
}

Json With(const std::string& type, const char* changes) {
  Json json = Minimal(type);
  json.update(Json::parse(changes), /*merge_objects=*/false);
  return json;
}

GptConfig Parse(const Json& json) { return ParseConfigJson(json.dump(), "dir/config.json").model; }

// The whole message. "accepted" when there is none.
std::string Refusal(const std::string& text) {
  try {
    ParseConfigJson(text, "dir/config.json");
    return "accepted";
  } catch (const UserError& error) {
    return error.what();
  }
}

void ExpectSame(const GptConfig& a, const GptConfig& b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.ffn, b.ffn);
  EXPECT_EQ(a.vocabulary, b.vocabulary);
  EXPECT_EQ(a.context, b.context);
  EXPECT_EQ(a.tied, b.tied);
  EXPECT_EQ(a.dropout, b.dropout);
  EXPECT_EQ(a.attention_dropout, b.attention_dropout);
  EXPECT_EQ(a.norm_eps, b.norm_eps);
  EXPECT_EQ(a.rope_base, b.rope_base);
  EXPECT_EQ(a.rope_scaling, b.rope_scaling);
  EXPECT_EQ(a.rope_factor, b.rope_factor);
  EXPECT_EQ(a.rope_low_frequency, b.rope_low_frequency);
  EXPECT_EQ(a.rope_high_frequency, b.rope_high_frequency);
  EXPECT_EQ(a.rope_original_context, b.rope_original_context);
  EXPECT_EQ(a.init_std, b.init_std);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_EQ(a.loss_chunk, b.loss_chunk);
}

struct Row {
  const char* type;
  const char* changes;
  const char* key;   // in quotes in the message
  const char* part;  // of the message
};

TEST(ConfigJson, RefusesByFileAndKey) {
  const Row rows[] = {
      // Another function of the same tensors.
      {"llama", R"({"attention_bias": true})", "attention_bias", "not supported"},
      {"llama", R"({"mlp_bias": true})", "mlp_bias", "not supported"},
      {"mistral", R"({"attention_bias": true})", "attention_bias", "not supported"},
      {"mistral", R"({"sliding_window": 4096})", "sliding_window", "null"},
      {"mistral", R"({"sliding_window": 0})", "sliding_window", "null"},
      {"llama", R"({"head_dim": 4})", "head_dim", "= 2 is"},
      {"llama", R"({"hidden_act": "relu"})", "hidden_act", "silu"},
      {"llama", R"({"hidden_act": "gelu"})", "hidden_act", "silu"},
      {"gpt2", R"({"activation_function": "relu"})", "activation_function", "gelu_new"},
      {"gpt2", R"({"activation_function": "gelu"})", "activation_function", "gelu_new"},
      {"gpt2", R"({"activation": "relu"})", "activation", "not known"},
      {"gpt2", R"({"scale_attn_weights": false})", "scale_attn_weights", "not supported"},
      {"gpt2", R"({"scale_attn_weights": null})", "scale_attn_weights", "not supported"},
      {"gpt2", R"({"scale_attn_by_inverse_layer_idx": true})", "scale_attn_by_inverse_layer_idx", "not supported"},
      {"gpt2", R"({"add_cross_attention": true})", "add_cross_attention", "not supported"},
      {"gpt2", R"({"quantization_config": {"bits": 4}})", "quantization_config", "not supported"},
      {"llama", R"({"quantization_config": {}})", "quantization_config", "not supported"},
      {"qwen2", "{}", "model_type", "gpt2, llama and mistral"},
      {"", "{}", "model_type", "gpt2, llama and mistral"},
      // RoPE, in both spellings and both places.
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2}})", "rope_scaling.rope_type", "not supported"},
      {"llama", R"({"rope_scaling": {"type": "dynamic", "factor": 2}})", "rope_scaling.type", "not supported"},
      {"llama", R"({"rope_parameters": {"rope_type": "yarn", "factor": 2}})", "rope_parameters.rope_type", "linear"},
      {"llama", R"({"rope_parameters": {"rope_type": "longrope"}})", "rope_parameters.rope_type", "linear"},
      {"llama", R"({"rope_parameters": {"partial_rotary_factor": 0.5}})", "rope_parameters.partial_rotary_factor",
       "all channels"},
      {"llama", R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor", "all channels"},
      {"llama", R"({"rope_scaling": {"type": "linear"}})", "rope_scaling.factor", "missing"},
      {"llama", R"({"rope_scaling": {"type": "linear", "factor": 0}})", "rope_scaling.factor", "above 0"},
      {"llama", R"({"rope_scaling": {"type": "linear", "factor": -2}})", "rope_scaling.factor", "above 0"},
      {"llama", R"({"rope_scaling": {"type": "linear", "factor": "2"}})", "rope_scaling.factor", "a number"},
      {"llama", R"({"rope_scaling": {"type": 3}})", "rope_scaling.type", "a text"},
      {"llama", R"({"rope_scaling": 2.0})", "rope_scaling", "an object"},
      {"llama", R"({"rope_parameters": ["linear", 2]})", "rope_parameters", "an object"},
      {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "high_freq_factor": 4,
          "original_max_position_embeddings": 64}})",
       "rope_scaling.low_freq_factor", "missing"},
      {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
          "original_max_position_embeddings": 64}})",
       "rope_scaling.low_freq_factor", "below"},
      {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 0, "high_freq_factor": 4,
          "original_max_position_embeddings": 64}})",
       "rope_scaling.low_freq_factor", "above 0"},
      {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
          "original_max_position_embeddings": 0}})",
       "rope_scaling.original_max_position_embeddings", "at least 1"},
      {"llama", R"({"original_max_position_embeddings": 32, "rope_scaling": {"rope_type": "llama3", "factor": 8,
          "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 64}})",
       "original_max_position_embeddings", "64"},
      {"llama", R"({"rope_theta": 0})", "rope_theta", "above 0"},
      {"llama", R"({"rope_parameters": {"rope_theta": -1}})", "rope_parameters.rope_theta", "above 0"},
      // Types.
      {"gpt2", R"({"n_layer": "2"})", "n_layer", "whole number"},
      {"gpt2", R"({"n_layer": 2.5})", "n_layer", "whole number"},
      {"gpt2", R"({"n_layer": 1e30})", "n_layer", "whole number"},
      {"gpt2", R"({"n_layer": -2})", "n_layer", "whole number"},
      {"gpt2", R"({"n_layer": true})", "n_layer", "whole number"},
      {"gpt2", R"({"n_layer": [2]})", "n_layer", "whole number"},
      {"gpt2", R"({"n_layer": 18446744073709551615})", "n_layer", "whole number"},
      {"gpt2", R"({"layer_norm_epsilon": "1e-5"})", "layer_norm_epsilon", "a number"},
      {"gpt2", R"({"layer_norm_epsilon": 0})", "layer_norm_epsilon", "above 0"},
      {"gpt2", R"({"initializer_range": -0.02})", "initializer_range", "above 0"},
      {"gpt2", R"({"tie_word_embeddings": 1})", "tie_word_embeddings", "true or false"},
      {"gpt2", R"({"activation_function": 1})", "activation_function", "a text"},
      {"gpt2", R"({"embd_pdrop": "0.1"})", "embd_pdrop", "a number"},
      {"gpt2", R"({"model_type": 2})", "model_type", "a text"},
      {"gpt2", R"({"model_type": null})", "model_type", "missing"},
      {"llama", R"({"rms_norm_eps": -1e-6})", "rms_norm_eps", "above 0"},
      {"llama", R"({"rms_norm_eps": [1]})", "rms_norm_eps", "a number"},
      {"llama", R"({"attention_bias": "false"})", "attention_bias", "true or false"},
      {"llama", R"({"hidden_act": null, "hidden_size": {}})", "hidden_size", "whole number"},
      // Sizes.
      {"gpt2", R"({"n_layer": 0})", "n_layer", "at least 1"},
      {"gpt2", R"({"n_layer": 1000000000000})", "n_layer", "at most"},
      {"gpt2", R"({"n_embd": 9007199254740992})", "n_embd", "at most"},
      {"gpt2", R"({"n_head": 0})", "n_head", "at least 1"},
      {"gpt2", R"({"n_head": 3})", "n_head", "does not divide 'n_embd' = 16"},
      {"gpt2", R"({"vocab_size": 0})", "vocab_size", "at least 1"},
      {"gpt2", R"({"vocab_size": 1000000000000})", "vocab_size", "at most"},
      {"gpt2", R"({"n_positions": 0})", "n_positions", "at least 1"},
      {"gpt2", R"({"n_positions": null, "n_ctx": 0})", "n_ctx", "at least 1"},
      {"gpt2", R"({"n_inner": 0})", "n_inner", "at least 1"},
      {"gpt2", R"({"n_inner": 4503599627370496})", "n_inner", "at most"},
      {"llama", R"({"num_hidden_layers": 0})", "num_hidden_layers", "at least 1"},
      {"llama", R"({"num_attention_heads": 0})", "num_attention_heads", "at least 1"},
      {"llama", R"({"num_attention_heads": 3})", "num_attention_heads", "does not divide 'hidden_size' = 16"},
      {"llama", R"({"num_attention_heads": 16})", "num_attention_heads", "even"},
      {"llama", R"({"num_key_value_heads": 0})", "num_key_value_heads", "at least 1"},
      {"llama", R"({"num_key_value_heads": 3})", "num_key_value_heads", "does not divide 'num_attention_heads' = 8"},
      {"llama", R"({"num_key_value_heads": 16})", "num_key_value_heads", "does not divide"},
      {"llama", R"({"intermediate_size": 0})", "intermediate_size", "at least 1"},
      {"llama", R"({"max_position_embeddings": 0})", "max_position_embeddings", "at least 1"},
      {"llama", R"({"max_position_embeddings": 9007199254740992})", "max_position_embeddings", "at most"},
  };
  for (const Row& row : rows) {
    const std::string message = Refusal(With(row.type, row.changes).dump());
    SCOPED_TRACE(std::string(row.type) + " " + row.changes + ": " + message);
    EXPECT_EQ(message.rfind("dir/config.json: ", 0), 0u);
    EXPECT_NE(message.find("'" + std::string(row.key) + "'"), std::string::npos);
    EXPECT_NE(message.find(row.part), std::string::npos);
  }
}

TEST(ConfigJson, MissingRequiredKeysAreNamed) {
  for (const char* const type : {"gpt2", "llama", "mistral"}) {
    const Json whole = Minimal(type);
    ASSERT_EQ(Refusal(whole.dump()), "accepted") << type;
    for (const auto& [key, unused] : whole.items()) {
      Json json = whole;
      json.erase(key);
      const std::string message = Refusal(json.dump());
      EXPECT_EQ(message.rfind("dir/config.json: '" + key + "' is missing", 0), 0u)
          << type << " " << key << " " << message;
    }
  }
}

TEST(ConfigJson, RefusesWhatIsNoJson) {
  const std::string whole = Minimal("llama").dump(), begin = whole.substr(0, whole.size() - 1);
  const std::pair<std::string, const char*> rows[] = {
      {"", "not valid JSON"},
      {" \n", "not valid JSON"},
      {"{}", "'model_type' is missing"},
      {"[]", "no JSON object"},
      {"null", "no JSON object"},
      {"\"gpt2\"", "no JSON object"},
      {begin, "not valid JSON"},
      {whole + whole, "not valid JSON"},
      {begin + ",}", "not valid JSON"},
      {begin + R"(,"rms_norm_eps":NaN})", "not valid JSON"},
      {begin + R"(,"rms_norm_eps":Infinity})", "not valid JSON"},
      {begin + R"(,"rms_norm_eps":1e400})", "not valid JSON"},
      {begin + ",\"x\":\"\xff\"}", "not valid JSON"},
      {begin + ",\"\xed\xa0\x80\":1}", "not valid JSON"},
      {begin + R"(,"x":"\ud800"})", "not valid JSON"},
      {std::string("\xff\xfe{\0}\0", 6), "not valid JSON"},
      {begin + std::string(",\"\0\":1}", 7), "not valid JSON"},
      {begin + R"(,"hidden_size":16})", "'hidden_size' appears twice"},
      {begin + R"(,"a":[{"b":1,"c":{},"b":2}]})", "'b' appears twice"},
      {begin + R"(,"hidden\u005fsize":16})", "'hidden_size' appears twice"},
      {begin + ",\"x\":\"" + std::string(1 << 20, 'x'), "not valid JSON"},
  };
  for (const auto& [text, part] : rows) {
    const std::string message = Refusal(text);
    SCOPED_TRACE(text.substr(0, 200) + ": " + message.substr(0, 1000));
    EXPECT_EQ(message.rfind("dir/config.json: ", 0), 0u);
    EXPECT_NE(message.find(part), std::string::npos);
    EXPECT_LT(message.size(), 1000u);
  }
}

// The library prints and copies by recursion, so that a deep value in a message would exhaust the stack.
TEST(ConfigJson, DeepNesting) {
  for (const size_t depth : {100, 1'000'000})
    for (const auto& [open, close] : {std::pair("[", "]"), std::pair(R"({"a":)", "}")}) {
      std::string deep;
      for (size_t i = 0; i < depth; ++i) deep += open;
      EXPECT_NE(Refusal(R"({"model_type":"gpt2","n_layer":)" + deep).find("nested deeper"), std::string::npos);
      deep += "0";
      for (size_t i = 0; i < depth; ++i) deep += close;
      const std::string message = Refusal(R"({"model_type":"gpt2","n_layer":)" + deep + "}");
      EXPECT_EQ(message, "dir/config.json: nested deeper than 64");
    }
  std::string allowed = "0";
  for (int i = 0; i < kMaxJsonDepth - 1; ++i) allowed = "[" + allowed + "]";
  const std::string begin = Minimal("gpt2").dump();
  EXPECT_EQ(Refusal(begin.substr(0, begin.size() - 1) + R"(,"x":)" + allowed + "}"), "accepted");
}

TEST(ConfigJson, MessagesAreShortAndText) {
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\xe2\x82\xac";  // cut between bytes of a character for some offsets
  for (const char* const before : {"", "a", "ab"}) {
    const std::string message =
        Refusal(With("gpt2", "{}").dump().insert(1, "\"tie_word_embeddings\":\"" + (before + wide) + "\","));
    EXPECT_LT(message.size(), 200u) << message;
    EXPECT_NO_THROW(Json(message).dump()) << message;
  }
}

TEST(ConfigJson, ByteOrderMarkIsSkipped) { EXPECT_EQ(Refusal("\xef\xbb\xbf" + Minimal("gpt2").dump()), "accepted"); }

// Of transformers 5.24: GPT2Config, LlamaConfig, MistralConfig.
TEST(ConfigJson, DefaultsOfTransformers) {
  const GptConfig gpt2 = Parse(Minimal("gpt2"));
  EXPECT_EQ(gpt2.family, "gpt2");
  EXPECT_EQ(gpt2.kv_heads, 4);
  EXPECT_EQ(gpt2.ffn, 64);
  EXPECT_EQ(gpt2.norm_eps, 1e-5);
  EXPECT_EQ(gpt2.init_std, 0.02);
  EXPECT_TRUE(gpt2.tied);
  EXPECT_EQ(Parse(With("gpt2", R"({"n_inner": null})")).ffn, 64);
  EXPECT_EQ(Parse(With("gpt2", R"({"n_positions": null, "n_ctx": 48})")).context, 48);
  EXPECT_EQ(Parse(With("gpt2", R"({"n_ctx": 48})")).context, 32);
  EXPECT_FALSE(Parse(With("gpt2", R"({"tie_word_embeddings": null})")).tied);  // None is not true

  const GptConfig llama = Parse(Minimal("llama"));
  EXPECT_EQ(llama.family, "llama");
  EXPECT_EQ(llama.kv_heads, 8);
  EXPECT_EQ(llama.context, 2048);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  EXPECT_EQ(llama.rope_base, 10000.0);
  EXPECT_EQ(llama.rope_scaling, "none");
  EXPECT_EQ(llama.init_std, 0.02);
  EXPECT_FALSE(llama.tied);
  EXPECT_EQ(Parse(With("llama", R"({"num_key_value_heads": null, "head_dim": null})")).kv_heads, 8);

  const GptConfig mistral = Parse(With("mistral", R"({"hidden_size": 64, "num_attention_heads": 16})"));
  EXPECT_EQ(mistral.family, "llama");
  EXPECT_EQ(mistral.kv_heads, 8);
  EXPECT_EQ(mistral.context, 131072);
  EXPECT_EQ(mistral.norm_eps, 1e-6);
  EXPECT_EQ(mistral.rope_base, 10000.0);
  EXPECT_FALSE(mistral.tied);
  // None is as many as heads, there too.
  EXPECT_EQ(
      Parse(With("mistral", R"({"hidden_size": 64, "num_attention_heads": 16, "num_key_value_heads": null})")).kv_heads,
      16);
  EXPECT_EQ(Parse(With("mistral", R"({"sliding_window": 64, "max_position_embeddings": 64})")).context, 64);
}

TEST(ConfigJson, AcceptsWhatDoesNotChangeTheFunction) {
  for (
      const char* const changes :
      {R"({"hidden_act": "swish", "attention_bias": false, "mlp_bias": null, "head_dim": 2, "pretraining_tp": 2})",
       R"({"rope_scaling": null, "rope_parameters": null, "partial_rotary_factor": 1.0})",
       R"({"rope_scaling": {}, "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1}})",
       R"({"architectures": 7, "torch_dtype": [], "eos_token_id": [1, 2], "use_cache": "maybe", "quantization_config": null})",
       R"({"num_hidden_layers": 2.0, "vocab_size": 1e2})"}) {
    SCOPED_TRACE(changes);
    ExpectSame(Parse(With("llama", changes)), Parse(Minimal("llama")));
  }
  const ImportedConfig imported = ParseConfigJson(
      With("gpt2", R"({"embd_pdrop": 0.1, "activation_function": "gelu_pytorch_tanh"})").dump(), "config.json");
  EXPECT_EQ(imported.model.dropout, 0);
  ASSERT_EQ(imported.notes.size(), 1u);
  EXPECT_NE(imported.notes[0].find("embd_pdrop"), std::string::npos);
}

TEST(ConfigJson, RopeOfBothVersions) {
  const std::pair<const char*, const char*> spellings[] = {
      {R"({"rope_theta": 500000.0})", R"({"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}})"},
      {R"({"rope_theta": 5000, "rope_scaling": {"type": "linear", "factor": 4}})",
       R"({"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000}})"},
      {R"({"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.5,
           "high_freq_factor": 3.5, "original_max_position_embeddings": 64}})",
       R"({"rope_parameters": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.5, "rope_theta": 500000.0,
           "high_freq_factor": 3.5, "original_max_position_embeddings": 64}, "original_max_position_embeddings": 64})"},
  };
  for (const auto& [four, five] : spellings) {
    SCOPED_TRACE(four);
    const GptConfig config = Parse(With("llama", four));
    ExpectSame(config, Parse(With("llama", five)));
    EXPECT_NE(config.rope_base, 10000.0);
  }
  EXPECT_EQ(Parse(With("llama", spellings[1].first)).rope_factor, 4);
  EXPECT_EQ(Parse(With("llama", spellings[2].second)).rope_low_frequency, 1.5);
  EXPECT_EQ(Parse(With("llama", spellings[2].second)).rope_high_frequency, 3.5);
  EXPECT_EQ(Parse(With("llama", spellings[2].second)).rope_original_context, 64);
  // Where both are, both versions of the library follow rope_scaling.
  EXPECT_EQ(Parse(With("llama", R"({"rope_scaling": {"type": "linear", "factor": 4},
                                    "rope_parameters": {"rope_type": "linear", "factor": 2}})"))
                .rope_factor,
            4);
}

// Whatever is exported is read back as the same model.
TEST(ConfigJson, FormatThenParseIsTheIdentity) {
  std::mt19937_64 rng(7);
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(1 + rng() % static_cast<uint64_t>(n)); };
  const auto real = [&](double from, double to) { return std::uniform_real_distribution(from, to)(rng); };
  int tied = 0, grouped = 0;
  std::map<std::string, int> kinds;
  for (int i = 0; i < 2000; ++i) {
    GptConfig c;
    c.family = rng() % 2 == 0 ? "gpt2" : "llama";
    c.layers = upto(200);
    c.kv_heads = c.family == "llama" ? upto(8) : 0;
    c.heads = c.family == "llama" ? c.kv_heads * upto(4) : upto(32);
    c.hidden = c.heads * upto(64) * 2;
    c.ffn = rng() % 2 == 0 ? 0 : upto(10000);
    c.vocabulary = upto(300000);
    c.context = upto(200000);
    c.tied = rng() % 2 == 0;
    c.norm_eps = real(1e-12, 1e-3);
    c.init_std = real(1e-4, 1);
    if (c.family == "llama") {
      c.rope_base = real(1, 1e6);
      c.rope_scaling = std::vector<const char*>{"none", "linear", "llama3"}[rng() % 3];
      if (c.rope_scaling != "none") c.rope_factor = real(0.1, 100);
      if (c.rope_scaling == "llama3") {
        c.rope_low_frequency = real(0.1, 4);
        c.rope_high_frequency = c.rope_low_frequency + real(0.1, 4);
        c.rope_original_context = upto(100000);
      }
    }
    tied += c.tied;
    grouped += c.kv_heads != 0 && c.kv_heads != c.heads;
    ++kinds[c.family + " " + c.rope_scaling];
    SCOPED_TRACE(i);
    const std::string text = FormatConfigJson(c);
    ExpectSame(ParseConfigJson(text, "config.json").model, model::ResolveGptConfig(c));
    EXPECT_EQ(FormatConfigJson(ParseConfigJson(text, "config.json").model), text);
    if (HasFailure()) FAIL() << text;
  }
  EXPECT_GT(tied, 500);
  EXPECT_GT(grouped, 300);
  EXPECT_EQ(kinds.size(), 4u);
}

TEST(ConfigJson, FormatSaysTypesAndTokens) {
  const Json json = Json::parse(FormatConfigJson({}, {.dtype = "bfloat16", .special_ids = {{"eos_token_id", {5}}}}));
  EXPECT_EQ(json["torch_dtype"], "bfloat16");
  EXPECT_EQ(json["dtype"], "bfloat16");
  EXPECT_EQ(json["eos_token_id"], 5);
  EXPECT_TRUE(json.at("bos_token_id").is_null());
}

}  // namespace
}  // namespace penstock::huggingface
