#include "huggingface/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "huggingface/small_models.h"

namespace penstock::huggingface {
namespace {

using Shape = std::vector<int64_t>;

// By our name.
std::map<std::string, MappedTensor> Mapped(const model::GptConfig& config) {
  const model::ModelSpec spec = model::BuildGptSpec(config);
  const std::vector<MappedTensor> mapped = MapParameters(spec);
  EXPECT_EQ(mapped.size(), spec.parameters.size());
  std::map<std::string, MappedTensor> by_name;
  std::set<std::string> theirs;
  for (size_t p = 0; p < mapped.size(); ++p) {
    by_name[spec.parameters[p].name] = mapped[p];
    EXPECT_TRUE(theirs.insert(mapped[p].theirs).second) << mapped[p].theirs;
    Shape back = mapped[p].shape;
    if (mapped[p].transposed) std::reverse(back.begin(), back.end());
    EXPECT_EQ(back, spec.parameters[p].shape) << mapped[p].theirs;
  }
  return by_name;
}

TEST(Names, Gpt2MatricesOfBlocksAreTransposed) {
  const auto mapped = Mapped(SmallGpt2(false));
  const MappedTensor& qkv = mapped.at("blocks.1.attn.qkv.weight");
  EXPECT_EQ(qkv.theirs, "transformer.h.1.attn.c_attn.weight");
  EXPECT_TRUE(qkv.transposed);
  EXPECT_EQ(qkv.shape, (Shape{8, 24}));
  for (const auto& [ours, tensor] : mapped)
    EXPECT_EQ(tensor.transposed, tensor.shape.size() == 2 && ours.rfind("blocks.", 0) == 0) << ours;
  EXPECT_EQ(mapped.at("head.lm.weight").theirs, kHeadName);
  EXPECT_EQ(mapped.at("embed.position.weight").shape, (Shape{6, 8}));
  EXPECT_EQ(Mapped(SmallGpt2(true)).count("head.lm.weight"), 0u);
}

TEST(Names, LlamaIsCopiedAsItIs) {
  const auto mapped = Mapped(SmallLlama(false));
  for (const auto& [ours, tensor] : mapped) EXPECT_FALSE(tensor.transposed) << ours;
  EXPECT_EQ(mapped.at("blocks.0.attn.k.weight").theirs, "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(mapped.at("blocks.0.attn.k.weight").shape, (Shape{4, 8}));
  EXPECT_EQ(mapped.at("head.norm.weight").theirs, "model.norm.weight");
}

TEST(Names, OtherFamiliesHaveNone) {
  model::ModelSpec spec = model::BuildGptSpec(SmallGpt2(true));
  spec.family = "other";
  EXPECT_THROW(MapParameters(spec), InternalError);
}

TEST(Names, WithoutHeadAndConstants) {
  EXPECT_EQ(WithoutHeadPrefix("transformer.h.0.ln_1.bias"), "h.0.ln_1.bias");
  EXPECT_EQ(WithoutHeadPrefix("model.norm.weight"), "norm.weight");
  EXPECT_EQ(WithoutHeadPrefix("lm_head.weight"), "lm_head.weight");
  for (const char* const name :
       {"h.0.attn.bias", "transformer.h.0.attn.masked_bias", "model.layers.0.self_attn.rotary_emb.inv_freq"})
    EXPECT_TRUE(IsConstantBuffer(name)) << name;
  for (const model::GptConfig& config : {SmallGpt2(false), SmallLlama(false)})
    for (const auto& [ours, tensor] : Mapped(config)) EXPECT_FALSE(IsConstantBuffer(tensor.theirs)) << ours;
}

}  // namespace
}  // namespace penstock::huggingface
