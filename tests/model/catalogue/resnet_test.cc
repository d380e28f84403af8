// Residual networks stage by stage. He et al. 2016; torchvision's shapes.
#include <gtest/gtest.h>

#include "base/registry.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

ModelSpec Build(const std::string& name) { return Registry<CatalogueEntry>::Find(name).build(); }

struct Sum {
  int64_t parameters = 0, flops = 0, saved = 0;
};

// Layers [first, last). The tables count what a layer makes and not what it is given; specs the other way round.
Sum Over(const ModelSpec& spec, size_t first, size_t last) {
  Sum sum;
  for (size_t l = first; l < last; ++l) {
    const LayerSpec& layer = spec.layers[l];
    for (const int p : layer.parameters) sum.parameters += spec.parameters[p].numel();
    sum.flops += layer.forward_flops(1, 1);
    sum.saved += layer.saved(1, 1) + layer.saved_operands(1, 1) - layer.operands_in_saved(1, 1);
    if (!layer.boundary.empty()) sum.saved += layer.boundary[0].numel(1, 1);
  }
  return sum;
}

struct Stage {
  size_t blocks;
  int64_t parameters, flops, saved, out;
};

void ExpectStages(const std::string& name, const std::vector<Stage>& stages) {
  const ModelSpec spec = Build(name);
  size_t layer = 0;
  for (const Stage& stage : stages) {
    const Sum sum = Over(spec, layer, layer + stage.blocks);
    layer += stage.blocks;
    EXPECT_EQ(sum.parameters, stage.parameters) << name << " before layer " << layer;
    EXPECT_EQ(sum.flops, stage.flops) << name << " before layer " << layer;
    if (stage.saved > 0) {
      EXPECT_EQ(sum.saved, stage.saved) << name << " before layer " << layer;
    }
    EXPECT_EQ(spec.layers[layer - 1].boundary[0].numel(1, 1), stage.out) << name << " before layer " << layer;
  }
  EXPECT_EQ(layer + 1, spec.layers.size()) << name;
}

TEST(Resnet, Stages18) {
  ExpectStages("resnet-18", {{1, 9'536, 236'027'904, 1'806'336, 64 * 56 * 56},
                             {2, 147'968, 924'844'032, 1'605'632, 200'704},
                             {2, 230'144 + 295'424, 359'661'568 + 462'422'016, 903'168, 100'352},
                             {2, 919'040 + 1'180'672, 359'661'568 + 462'422'016, 451'584, 50'176},
                             {2, 3'673'088 + 4'720'640, 359'661'568 + 462'422'016, 225'792, 25'088}});
}

TEST(Resnet, Stages50) {
  ExpectStages("resnet-50", {{1, 9'536, 236'027'904, 1'806'336, 64 * 56 * 56},
                             {3, 215'808, 1'335'885'824, 8'028'160, 802'816},
                             {4, 1'219'584, 2'055'208'960, 5'820'416, 401'408},
                             {6, 7'098'368, 2'928'672'768, 4'114'432, 200'704},
                             {3, 14'964'736, 1'618'477'056, 1'154'048, 100'352}});
}

TEST(Resnet, Blocks50) {
  const ModelSpec spec = Build("resnet-50");
  const int64_t first[][2] = {
      {75'008, 462'422'016}, {379'392, 745'013'248}, {1'512'448, 745'013'248}, {6'039'552, 745'013'248}};
  const int64_t others[][2] = {
      {70'400, 436'731'904}, {280'064, 436'731'904}, {1'117'184, 436'731'904}, {4'462'592, 436'731'904}};
  const size_t blocks[] = {3, 4, 6, 3};
  size_t layer = 1;
  for (int stage = 0; stage < 4; ++stage)
    for (size_t i = 0; i < blocks[stage]; ++i, ++layer) {
      const Sum sum = Over(spec, layer, layer + 1);
      EXPECT_EQ(sum.parameters, (i == 0 ? first : others)[stage][0]) << spec.layers[layer].path;
      EXPECT_EQ(sum.flops, (i == 0 ? first : others)[stage][1]) << spec.layers[layer].path;
    }
}

TEST(Resnet, HeadsAndTotals) {
  const ModelSpec resnet18 = Build("resnet-18"), resnet50 = Build("resnet-50");
  EXPECT_EQ(Over(resnet18, 9, 10).parameters, 513'000);
  EXPECT_EQ(Over(resnet18, 9, 10).flops, 1'024'000);
  EXPECT_EQ(resnet18.layers.back().saved_operands(1, 1), 512);
  EXPECT_EQ(Over(resnet50, 17, 18).parameters, 2'049'000);
  EXPECT_EQ(Over(resnet50, 17, 18).flops, 4'096'000);
  EXPECT_EQ(resnet50.layers.back().saved_operands(1, 1), 2'048);
  // What the norms keep is what all convolutions make: the tabled outputs without the pool's and the classes.
  const auto convolved = [](const ModelSpec& spec) {
    int64_t n = 0;
    for (const LayerSpec& layer : spec.layers) n += layer.saved(1, 1) - layer.operands_in_saved(1, 1);
    return n - spec.layers.back().saved(1, 1);
  };
  EXPECT_EQ(convolved(resnet18), 2'685'416 - 200'704 - 1'000);
  EXPECT_EQ(convolved(resnet50), 11'315'688 - 200'704 - 1'000);
}

TEST(Resnet, StagesCifar) {
  ExpectStages("resnet-110-cifar", {{1, 464, 884'736, 2 * 16'384, 16'384},
                                    {18, 84'096, 169'869'312, 18 * 4 * 16'384, 16'384},
                                    {18, 329'472, 167'510'016, 18 * 4 * 8'192, 8'192},
                                    {18, 1'313'280, 167'510'016, 18 * 4 * 4'096, 4'096}});
  const ModelSpec spec = Build("resnet-110-cifar");
  EXPECT_EQ(Over(spec, 1, 2).parameters, 4'672);
  EXPECT_EQ(Over(spec, 19, 20).parameters, 13'952);
  EXPECT_EQ(Over(spec, 19, 20).flops, 7'077'888);
  EXPECT_EQ(Over(spec, 20, 21).parameters, 18'560);
  EXPECT_EQ(Over(spec, 37, 38).parameters, 55'552);
  EXPECT_EQ(Over(spec, 38, 39).parameters, 73'984);
  EXPECT_EQ(Over(spec, 55, 56).parameters, 650);
  EXPECT_EQ(Over(spec, 55, 56).flops, 1'280);
}

TEST(Resnet, ShapesAndTheFirstConvolution) {
  const ModelSpec spec = Build("resnet-50");
  const auto shape = [&](const char* name) { return spec.parameters[spec.parameter_index(name)].shape; };
  EXPECT_EQ(shape("stem.conv.weight"), (std::vector<int64_t>{64, 3, 7, 7}));
  EXPECT_EQ(shape("blocks.0.conv2.weight"), (std::vector<int64_t>{64, 64, 3, 3}));
  EXPECT_EQ(shape("blocks.0.conv3.weight"), (std::vector<int64_t>{256, 64, 1, 1}));
  EXPECT_EQ(shape("blocks.3.shortcut.weight"), (std::vector<int64_t>{512, 256, 1, 1}));
  EXPECT_EQ(shape("blocks.3.shortcut.norm.bias"), (std::vector<int64_t>{512}));
  EXPECT_EQ(shape("head.fc.weight"), (std::vector<int64_t>{1000, 2048}));
  EXPECT_EQ(spec.layers[0].input_flops(1, 1), 0);
  EXPECT_EQ(spec.layers[0].weight_flops(1, 1), 236'027'904);
  EXPECT_EQ(spec.layers[1].input_flops(1, 1), 462'422'016);
  EXPECT_EQ(spec.layers[0].boundary[0].shape, (std::vector<int64_t>{kBatch, 64, 56, 56}));
}

}  // namespace
}  // namespace penstock::model
