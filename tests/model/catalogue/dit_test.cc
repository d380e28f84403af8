// Diffusion transformers layer by layer. Peebles and Xie 2023.
#include <gtest/gtest.h>

#include "base/registry.h"
#include "model/catalogue.h"
#include "model/partition.h"

namespace penstock::model {
namespace {

ModelSpec Build(const std::string& name) { return Registry<CatalogueEntry>::Find(name).build(); }

int64_t Own(const ModelSpec& spec, const LayerSpec& layer, const std::string& part = "") {
  int64_t n = 0;
  for (const int p : layer.parameters)
    if (spec.parameters[p].name.starts_with(layer.path + "." + part)) n += spec.parameters[p].numel();
  return n;
}

TEST(Dit, SmallSizes) {
  struct Case {
    const char* name;
    int64_t tokens, patch, final, block_flops, saved, out;
  };
  for (const Case& c : {Case{"dit-s-2", 256, 6'528, 308'000, 1'008'402'432, 2'162'688, 98'304},
                        Case{"dit-s-4", 64, 24'960, 344'960, 234'553'344, 466'944, 24'576},
                        Case{"dit-s-8", 16, 98'688, 492'800, 58'785'792, 112'128, 6'144}}) {
    const ModelSpec spec = Build(c.name);
    const LayerSpec& embed = spec.layers.front();
    EXPECT_EQ(Registry<CatalogueEntry>::Find(c.name).length, c.tokens);
    EXPECT_EQ(Own(spec, embed, "patch"), c.patch);
    EXPECT_EQ(Own(spec, embed, "time"), 246'528);
    EXPECT_EQ(Own(spec, embed, "label"), 384'384);
    EXPECT_EQ(Own(spec, spec.layers.back()), c.final);
    ASSERT_EQ(spec.layers.size(), 14u);
    for (int i = 1; i <= 12; ++i) {
      const LayerSpec& block = spec.layers[i];
      EXPECT_EQ(Own(spec, block), 2'659'968);
      EXPECT_EQ(Own(spec, block, "modulation"), 887'040);
      EXPECT_EQ(block.forward_flops(1, c.tokens), c.block_flops);
      // The table counts tokens; c, its activation and the six vectors made of it come to 8 h per sample.
      EXPECT_EQ(block.saved(1, c.tokens) + block.saved_operands(1, c.tokens), c.saved + 8 * 384);
      ASSERT_EQ(block.boundary.size(), 2u);
      EXPECT_EQ(block.boundary[0].numel(1, c.tokens), c.out);
      EXPECT_EQ(block.boundary[1].numel(1, c.tokens), 384);
    }
  }
}

TEST(Dit, FirstProductsNeedNoInputGradient) {
  const ModelSpec spec = Build("dit-s-2");
  const LayerSpec& embed = spec.layers.front();
  EXPECT_EQ(embed.input_flops(1, 256), 2 * 384 * 384);  // second matrix of the time step
  EXPECT_EQ(embed.weight_flops(1, 256), embed.forward_flops(1, 256));
}

// A third of a block's parameters are in the modulation, nearly without flops.
TEST(Dit, ModulationHasParametersButNoFlops) {
  const ModelSpec spec = Build("dit-s-2");
  const LayerSpec& block = spec.layers[1];
  EXPECT_NEAR(887'040.0 / 2'659'968.0, 1.0 / 3, 0.001);
  EXPECT_LT(12.0 * 384 * 384 / static_cast<double>(block.forward_flops(1, 256)), 0.002);
  EXPECT_EQ(block.forward_flops.per_sample, 12 * 384 * 384);
}

}  // namespace
}  // namespace penstock::model
