// Operations of layers: they add up to the layer's flops, for every model of the catalogue and all kinds of GPT.
#include <gtest/gtest.h>

#include <set>

#include "base/registry.h"
#include "model/catalogue.h"
#include "model/gpt.h"
#include "model/operation.h"

namespace penstock::model {
namespace {

void ExpectEqual(SizeFormula a, SizeFormula b, const std::string& what) {
  EXPECT_EQ(a.per_sample, b.per_sample) << what;
  EXPECT_EQ(a.per_token, b.per_token) << what;
  EXPECT_EQ(a.per_token_pair, b.per_token_pair) << what;
}

bool Empty(SizeFormula x) { return x.per_sample == 0 && x.per_token == 0 && x.per_token_pair == 0; }

// The rules of operation.h, written out here once more.
void ExpectOperationsAddUp(const ModelSpec& spec, const std::string& model) {
  for (const LayerSpec& layer : spec.layers) {
    const std::string where = model + " " + layer.path;
    ASSERT_FALSE(layer.operations.empty()) << where;
    SizeFormula forward, input, weight;
    int64_t weights = 0;
    std::set<std::string> names;
    for (const Operation& operation : layer.operations) {
      EXPECT_TRUE(names.insert(operation.name).second) << where << " has two operations " << operation.name;
      EXPECT_FALSE(Empty(operation.moved)) << where << " " << operation.name;
      EXPECT_GE(operation.backward_moved, 0) << where << " " << operation.name;
      forward = forward + operation.flops;
      weights += operation.weights;
      switch (operation.kind) {
        case OperationKind::gemm:
          EXPECT_GT(operation.weights, 0) << where << " " << operation.name;
          EXPECT_FALSE(Empty(operation.flops)) << where << " " << operation.name;
          if (operation.input_gradient) input = input + operation.flops;
          weight = weight + operation.flops;
          break;
        case OperationKind::attention:
          EXPECT_EQ(operation.weights, 0) << where << " " << operation.name;
          EXPECT_FALSE(Empty(operation.flops)) << where << " " << operation.name;
          input = input + 2 * operation.flops;
          break;
        case OperationKind::memory:
        case OperationKind::tensor_reduce:
          EXPECT_TRUE(Empty(operation.flops)) << where << " " << operation.name;
          break;
      }
      if (operation.kind == OperationKind::tensor_reduce) {
        EXPECT_EQ(operation.split, TensorSplit::replicated) << where << " " << operation.name;
      }
    }
    ExpectEqual(forward, layer.forward_flops, where);
    if (std::any_cast<GptConfig>(&spec.config) != nullptr && layer.kind == "head") {
      // Ours makes the logits again in the backward and does not defer: forward, input half and weight half in one.
      ExpectEqual(3 * forward, layer.input_flops, where);
      EXPECT_TRUE(Empty(layer.weight_flops)) << where;
    } else {
      ExpectEqual(input, layer.input_flops, where);
      ExpectEqual(weight, layer.weight_flops, where);
    }
    // Every parameter is read by one operation, but for tables (read by rows).
    int64_t parameters = 0;
    for (const int p : layer.parameters)
      if (layer.kind != "embed" && layer.kind != "table") parameters += spec.parameters[p].numel();
    if (parameters > 0) {
      EXPECT_EQ(weights, parameters) << where;
    }
  }
}

TEST(Operations, AddUpForEveryReferenceModel) {
  ASSERT_GE(Registry<CatalogueEntry>::All().size(), 40u);
  for (const auto& [name, entry] : Registry<CatalogueEntry>::All()) ExpectOperationsAddUp(entry.build(), name);
}

TEST(Operations, AddUpForEveryKindOfGpt) {
  for (const char* family : {"gpt2", "llama"})
    for (const char* attention : {"fused", "reference"})
      for (const double dropout : {0.0, 0.1})
        for (const double attention_dropout : {0.0, 0.1})
          for (const bool tied : {false, true})
            for (const int64_t kv_heads : {0, 2}) {
              const GptConfig config{.family = family,
                                     .layers = 2,
                                     .hidden = 64,
                                     .heads = 4,
                                     .kv_heads = std::string(family) == "llama" ? kv_heads : 0,
                                     .ffn = 200,
                                     .tied = tied,
                                     .dropout = dropout,
                                     .attention_dropout = std::string(attention) == "reference" ? attention_dropout : 0,
                                     .attention = attention};
              ExpectOperationsAddUp(BuildGptSpec(config), std::string(family) + " " + attention);
            }
}

const Operation& Named(const LayerSpec& layer, const std::string& name) {
  for (const Operation& operation : layer.operations)
    if (operation.name == name) return operation;
  throw std::out_of_range(name);
}

TEST(Operations, BlockOfGpt2) {
  GptConfig config{.family = "gpt2", .layers = 1, .hidden = 64, .heads = 4};
  const LayerSpec block = BuildGptSpec(config).layers[1];
  const Operation& qkv = Named(block, "attn.qkv");
  EXPECT_EQ(qkv.flops(2, 8), 2 * 2 * 8 * 64 * 192);
  EXPECT_EQ(qkv.moved(2, 8), 2 * 8 * (64 + 192));
  EXPECT_EQ(qkv.weights, 64 * 192 + 192);
  EXPECT_EQ(qkv.split, TensorSplit::split);
  const Operation& core = Named(block, "attn.core");
  EXPECT_EQ(core.flops(2, 8), 4 * 2 * 8 * 8 * 64);
  EXPECT_EQ(core.moved(2, 8), 4 * 2 * 8 * 64);  // nothing as large as length x length
  EXPECT_TRUE(core.selective);
  EXPECT_EQ(Named(block, "norm1").split, TensorSplit::replicated);
  EXPECT_EQ(Named(block, "mlp.activation").moved(1, 1), 2 * 256);
  EXPECT_FALSE(Named(block, "attn.proj").selective);
}

TEST(Operations, ReferenceAttentionMovesTheScores) {
  GptConfig config{.family = "gpt2", .layers = 1, .hidden = 64, .heads = 4, .attention = "reference"};
  const auto selective_pairs = [&] {
    int64_t n = 0;
    for (const Operation& operation : BuildGptSpec(config).layers[1].operations)
      n += operation.selective ? operation.moved.per_token_pair : 0;
    return n;
  };
  EXPECT_EQ(selective_pairs(), 4 * 4);  // written and read twice: products to softmax, softmax to products
  config.attention_dropout = 0.1;
  EXPECT_EQ(selective_pairs(), 6 * 4);
}

// Shoeybi et al. 2019: two sums of the hidden state per block and direction; Narayanan et al. 2021, section 3.2.
TEST(Operations, SumsOfATensorParallelGroup) {
  for (const char* family : {"gpt2", "llama"}) {
    const ModelSpec spec = BuildGptSpec({.family = family, .layers = 1, .hidden = 96, .heads = 4});
    const auto sums = [](const LayerSpec& layer, bool backward) {
      double n = 0;
      for (const Operation& operation : layer.operations)
        if (operation.kind == OperationKind::tensor_reduce)
          n += static_cast<double>(operation.moved(1, 1)) * (backward ? operation.backward_moved : 1);
      return n;
    };
    EXPECT_DOUBLE_EQ(sums(spec.layers[0], false), 96);
    EXPECT_DOUBLE_EQ(sums(spec.layers[0], true), 0);
    EXPECT_DOUBLE_EQ(sums(spec.layers[1], false), 2 * 96);
    EXPECT_DOUBLE_EQ(sums(spec.layers[1], true), 2 * 96);
    EXPECT_DOUBLE_EQ(sums(spec.layers[2], false), 3);
    EXPECT_DOUBLE_EQ(sums(spec.layers[2], true), 96);
  }
}

TEST(Operations, SelectiveIsTheCoreOfAttentionOnly) {
  // Korthikanti et al., section 5: recomputing the core costs 4 b s^2 h flops per layer.
  const ModelSpec spec = Registry<CatalogueEntry>::Find("gpt-175b").build();
  for (const LayerSpec& layer : spec.layers) {
    int64_t again = 0;
    for (const Operation& operation : layer.operations)
      if (operation.selective) again += operation.flops(1, 2048);
    EXPECT_EQ(again, layer.repeated ? int64_t{4} * 2048 * 2048 * 12288 : 0) << layer.path;
  }
}

}  // namespace
}  // namespace penstock::model
