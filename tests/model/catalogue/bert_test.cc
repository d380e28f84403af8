// BERT layer by layer. Devlin et al. 2019; per-layer counts worked out from the shapes.
#include <gtest/gtest.h>

#include "base/registry.h"
#include "model/catalogue.h"
#include "model/units.h"

namespace penstock::model {
namespace {

ModelSpec Build(const std::string& name) { return Registry<CatalogueEntry>::Find(name).build(); }

int64_t Parameters(const ModelSpec& spec, const std::string& path) {
  int64_t n = 0;
  for (const LayerSpec& layer : spec.layers)
    if (layer.path == path)
      for (const int p : layer.parameters) n += spec.parameters[p].numel();
  return n;
}

TEST(Bert, Layers) {
  struct Case {
    const char* name;
    int64_t layers, embeddings, block, pooler, short_flops, long_flops, short_saved, long_saved;
  };
  for (const Case& c :
       {Case{"bert-base", 12, 23'837'184, 7'087'872, 590'592, 1'862'270'976, 8'053'063'680, 1'769'472, 9'437'184},
        Case{"bert-large", 24, 31'782'912, 12'596'224, 1'049'600, 3'288'334'336, 13'958'643'712, 2'359'296,
             12'582'912}}) {
    const ModelSpec spec = Build(c.name);
    ASSERT_EQ(static_cast<int64_t>(spec.layers.size()), c.layers + 2);
    EXPECT_EQ(Parameters(spec, "embed"), c.embeddings);
    EXPECT_EQ(Parameters(spec, "pooler"), c.pooler);
    for (int64_t i = 1; i <= c.layers; ++i) {
      const LayerSpec& block = spec.layers[i];
      EXPECT_EQ(Parameters(spec, block.path), c.block);
      EXPECT_EQ(block.forward_flops(1, 128), c.short_flops);
      EXPECT_EQ(block.forward_flops(1, 512), c.long_flops);
      EXPECT_EQ(block.saved(1, 128) + block.saved_operands(1, 128), c.short_saved);
      EXPECT_EQ(block.saved(1, 512) + block.saved_operands(1, 512), c.long_saved);
      EXPECT_EQ(block.boundary[0].numel(1, 128), 128 * spec.hidden);
    }
  }
}

TEST(Bert, Shapes) {
  const ModelSpec spec = Build("bert-base");
  const auto shape = [&](const char* name) { return spec.parameters[spec.parameter_index(name)].shape; };
  EXPECT_EQ(shape("embed.word.weight"), (std::vector<int64_t>{30522, 768}));
  EXPECT_EQ(shape("embed.position.weight"), (std::vector<int64_t>{512, 768}));
  EXPECT_EQ(shape("embed.segment.weight"), (std::vector<int64_t>{2, 768}));
  EXPECT_EQ(shape("blocks.3.mlp.fc1.weight"), (std::vector<int64_t>{3072, 768}));
  EXPECT_EQ(shape("blocks.3.attn.proj.bias"), (std::vector<int64_t>{768}));
}

TEST(Bert, HeadsOfPreTraining) {
  const ModelSpec spec = Build("bert-base-pretraining");
  const LayerSpec& head = spec.layers.back();
  const int64_t h = 768, v = 30522, m = 20;
  // Masked positions: 2 m (h^2 + h V). The pooler and two classes on the first token.
  EXPECT_EQ(head.forward_flops(1, 128), 2 * m * (h * h + h * v) + 2 * h * h + 2 * 2 * h);
  // The decoder is the embedding: a unit of its own, used at both ends.
  const std::vector<ModelUnit> units = MakeUnits(spec, PartitionEven(spec, 4));
  ASSERT_EQ(units.size(), 5u);
  EXPECT_EQ(units.back().numel, v * h);
  EXPECT_EQ(units.back().uses.front().stage, 0);
  EXPECT_EQ(units.back().uses.back().stage, 3);
}

}  // namespace
}  // namespace penstock::model
