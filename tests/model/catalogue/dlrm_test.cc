// DLRM of MLPerf: tables, both MLPs, the interaction. Naumov et al. 2019.
#include <gtest/gtest.h>

#include "base/registry.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

ModelSpec Build(const std::string& name) { return Registry<CatalogueEntry>::Find(name).build(); }

struct Sum {
  int64_t parameters = 0, flops = 0;
};

Sum Over(const ModelSpec& spec, const std::string& prefix) {
  Sum sum;
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.path.starts_with(prefix)) continue;
    for (const int p : layer.parameters) sum.parameters += spec.parameters[p].numel();
    sum.flops += layer.forward_flops(1, 1);
  }
  return sum;
}

int64_t BoundaryNumel(const LayerSpec& layer) {
  int64_t n = 0;
  for (const BoundaryTensor& tensor : layer.boundary) n += tensor.numel(1, 1);
  return n;
}

TEST(Dlrm, Mlperf) {
  const ModelSpec spec = Build("dlrm-mlperf");
  EXPECT_EQ(Over(spec, "tables").parameters, 187'767'399 * int64_t{128});
  EXPECT_EQ(Over(spec, "tables").flops, 0);
  EXPECT_EQ(Over(spec, "bottom").parameters, 171'392);
  EXPECT_EQ(Over(spec, "bottom").flops, 340'992);
  EXPECT_EQ(Over(spec, "interaction").flops, 89'856);
  EXPECT_EQ(Over(spec, "top").parameters, 2'197'505);
  EXPECT_EQ(Over(spec, "top").flops, 4'389'376);
  EXPECT_EQ(Over(spec, "top.0").parameters, 491'520);
  EXPECT_EQ(Over(spec, "top.4").parameters, 257);
}

TEST(Dlrm, WhatCrosses) {
  const ModelSpec spec = Build("dlrm-mlperf");
  ASSERT_EQ(spec.layers.size(), 3u + 26 + 1 + 5);
  EXPECT_EQ(BoundaryNumel(spec.layers[0]), 512);
  EXPECT_EQ(spec.layers[3].path, "tables.0");
  EXPECT_EQ(spec.layers[3].boundary.size(), 2u);
  EXPECT_EQ(BoundaryNumel(spec.layers[3]), 128 + 128);
  EXPECT_EQ(BoundaryNumel(spec.layers[28]), 128 + 3'328);
  EXPECT_EQ(BoundaryNumel(spec.layers[29]), 479);
}

TEST(Dlrm, Halves) {
  const ModelSpec spec = Build("dlrm-mlperf");
  EXPECT_EQ(spec.layers[0].input_flops(1, 1), 0);
  EXPECT_EQ(spec.layers[0].weight_flops(1, 1), 2 * 13 * 512);
  EXPECT_EQ(spec.layers[1].input_flops(1, 1), 2 * 512 * 256);
  EXPECT_EQ(spec.layers[29].input_flops(1, 1), 2 * 89'856);
  EXPECT_EQ(spec.layers[29].weight_flops(1, 1), 0);
}

TEST(Dlrm, Toy) {
  const ModelSpec spec = Build("dlrm-toy");
  EXPECT_EQ(Over(spec, "tables").parameters, 2'394'560);
  EXPECT_EQ(Over(spec, "bottom").parameters + Over(spec, "top").parameters, 58'929);
  EXPECT_EQ(Over(spec, "bottom").flops + Over(spec, "top").flops, 117'248);
  EXPECT_EQ(spec.parameters[spec.parameter_index("top.0.linear.weight")].shape, (std::vector<int64_t>{128, 367}));
}

}  // namespace
}  // namespace penstock::model
