// Parameter counts, flops and activations of published models, to the unit (papers: Radford 2019, Touvron 2023).
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "model/family.h"
#include "model/gpt.h"

namespace penstock::model {
namespace {

GptConfig Gpt2(int64_t layers, int64_t hidden, int64_t heads) {
  return {.family = "gpt2", .layers = layers, .hidden = hidden, .heads = heads, .vocabulary = 50257, .context = 1024};
}

GptConfig Llama7B() {
  return {.family = "llama",
          .layers = 32,
          .hidden = 4096,
          .heads = 32,
          .ffn = 11008,
          .vocabulary = 32000,
          .context = 4096,
          .tied = false};
}

int64_t LayerParameters(const ModelSpec& spec, int layer) {
  int64_t n = 0;
  for (const int p : spec.layers[layer].parameters) n += spec.parameters[p].numel();
  return n;
}

TEST(GptSpec, Gpt2Small) {
  const ModelSpec spec = BuildGptSpec(Gpt2(12, 768, 12));
  EXPECT_EQ(spec.parameter_count(), 124'439'808);
  EXPECT_EQ(LayerParameters(spec, 1), 7'087'872);
  EXPECT_EQ(spec.forward_flops(1, 1024), 291'648'307'200);
  EXPECT_EQ(spec.layers[1].forward_flops(1, 1024), 17'716'740'096);
  EXPECT_EQ(spec.layers.back().forward_flops(1, 1024), 79'047'426'048);
  const LayerSpec& block = spec.layers[1];
  EXPECT_EQ(block.saved(1, 1024) + block.saved_operands(1, 1024), 12'582'912);
  EXPECT_EQ(block.boundary[0].numel(1, 1024), 786'432);
}

TEST(GptSpec, ReferenceAttentionKeepsTheProbabilities) {
  GptConfig config = Gpt2(12, 768, 12);
  config.attention = "reference";
  const LayerSpec block = BuildGptSpec(config).layers[1];
  EXPECT_EQ(block.saved(1, 1024) + block.saved_operands(1, 1024), 25'165'824);
}

TEST(GptSpec, Gpt2Medium) {
  const ModelSpec spec = BuildGptSpec(Gpt2(24, 1024, 16));
  EXPECT_EQ(spec.parameter_count(), 354'823'168);
  EXPECT_EQ(spec.forward_flops(1, 1024), 826'951'073'792);
}

TEST(GptSpec, Gpt2UntiedAddsTheHead) {
  GptConfig config = Gpt2(12, 768, 12);
  config.tied = false;
  EXPECT_EQ(BuildGptSpec(config).parameter_count(), 124'439'808 + 50257 * 768);
}

TEST(GptSpec, Llama2) {
  const ModelSpec spec = BuildGptSpec(Llama7B());
  EXPECT_EQ(spec.parameter_count(), 6'738'415'616);
  EXPECT_EQ(LayerParameters(spec, 1), 202'383'360);
  EXPECT_EQ(spec.layers[1].forward_flops(1, 4096), 1'932'735'283'200);
  EXPECT_EQ(spec.forward_flops(1, 4096), 62'921'270'886'400);
  const LayerSpec& block = spec.layers[1];
  EXPECT_EQ(block.saved(1, 4096) + block.saved_operands(1, 4096), 314'572'800);
}

TEST(GptSpec, TiedEmbeddingHasTwoUses) {
  const ModelSpec spec = BuildGptSpec(Gpt2(2, 64, 4));
  const int token = spec.parameter_index("embed.token.weight");
  EXPECT_EQ(spec.layers.front().parameters.front(), token);
  EXPECT_EQ(spec.layers.back().parameters.back(), token);
}

TEST(GptSpec, InitAsPublished) {
  const ModelSpec spec = BuildGptSpec(Gpt2(8, 64, 4));
  EXPECT_DOUBLE_EQ(spec.parameters[spec.parameter_index("blocks.3.attn.qkv.weight")].std, 0.02);
  EXPECT_DOUBLE_EQ(spec.parameters[spec.parameter_index("blocks.3.mlp.fc2.weight")].std, 0.02 / 4.0);
  EXPECT_EQ(spec.parameters[spec.parameter_index("blocks.3.norm1.weight")].init, Init::ones);
  EXPECT_FALSE(spec.parameters[spec.parameter_index("blocks.3.norm1.weight")].decay);
}

TEST(GptSpec, FamiliesAreRegistered) {
  EXPECT_EQ(Registry<ModelFamily>::Names(), (std::vector<std::string>{"gpt2", "llama"}));
  EXPECT_EQ(BuildModel({.family = "llama", .gpt = Llama7B()}).parameter_count(), 6'738'415'616);
  EXPECT_THROW(BuildModel({.family = "gtp2"}), UserError);
}

void ExpectRefused(const std::function<void(GptConfig&)>& change, const std::string& key) {
  GptConfig config;
  change(config);
  try {
    BuildGptSpec(config);
    ADD_FAILURE() << key << " was accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
  }
}

TEST(GptSpec, ImpossibleConfigsNameTheKey) {
  ExpectRefused([](GptConfig& c) { c.heads = 3; }, "model.hidden");
  ExpectRefused([](GptConfig& c) { c.layers = 0; }, "model.layers");
  ExpectRefused([](GptConfig& c) { c.kv_heads = 2; }, "model.kv_heads");
  ExpectRefused([](GptConfig& c) { c.family = "llama", c.kv_heads = 3; }, "model.kv_heads");
  ExpectRefused([](GptConfig& c) { c.family = "llama", c.hidden = 12; }, "RoPE");
  ExpectRefused([](GptConfig& c) { c.attention = "flash"; }, "model.attention");
  ExpectRefused([](GptConfig& c) { c.attention_dropout = 0.1; }, "model.attention_dropout");
  ExpectRefused([](GptConfig& c) { c.dropout = 1.0; }, "model.dropout");
}

// Sizes whose products would leave 64 bits; the largest allowed ones do not.
TEST(GptSpec, SizesAreBounded) {
  ExpectRefused([](GptConfig& c) { c.layers = kMaxLayers + 1; }, "model.layers");
  ExpectRefused([](GptConfig& c) { c.hidden = kMaxHidden + 4; }, "model.hidden");
  ExpectRefused([](GptConfig& c) { c.hidden = int64_t{1} << 53; }, "model.hidden");
  ExpectRefused([](GptConfig& c) { c.heads = kMaxHidden + 1; }, "model.heads");
  ExpectRefused([](GptConfig& c) { c.ffn = kMaxFfn + 1; }, "model.ffn");
  ExpectRefused([](GptConfig& c) { c.vocabulary = kMaxVocabulary + 1; }, "model.vocabulary");
  ExpectRefused([](GptConfig& c) { c.context = kMaxContext + 1; }, "model.context");
  for (const char* const family : {"gpt2", "llama"}) {
    const ModelSpec spec = BuildGptSpec({.family = family,
                                         .layers = 2,
                                         .hidden = kMaxHidden,
                                         .heads = 4,
                                         .ffn = kMaxFfn,
                                         .vocabulary = kMaxVocabulary,
                                         .context = kMaxContext,
                                         .tied = false});
    const auto block = static_cast<double>(spec.layers[1].forward_flops.per_token);
    EXPECT_GT(block, 0x1p43);
    EXPECT_LT(3 * block * static_cast<double>(kMaxLayers), 0x1p63);
    for (const ParameterSpec& p : spec.parameters) EXPECT_GT(p.numel(), 0) << p.name;
  }
}

}  // namespace
}  // namespace penstock::model
