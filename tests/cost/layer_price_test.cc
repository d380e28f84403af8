// Rooflines by hand. Sizes of the operations: 10 tokens; 2-byte activations and weights, 4-byte gradients.
#include "cost/layer_price.h"

#include <gtest/gtest.h>

#include "cost/devices.h"

namespace penstock::cost {
namespace {

using model::Operation;
using model::OperationKind;
using model::TensorSplit;

constexpr int64_t kTokens = 10;
constexpr double kMega = 1e6;

model::SizeFormula PerToken(int64_t n) { return {.per_token = n}; }

// 2 x 100 x 200 flops a token; 300 elements moved a token; 20000 weights.
Operation Product() {
  return {.name = "mlp.fc1",
          .kind = OperationKind::gemm,
          .flops = PerToken(40000),
          .moved = PerToken(300),
          .weights = 20000};
}
Operation Row() {
  Operation op = Product();
  op.name = "mlp.fc2";
  return op;
}
Operation Norm() {
  return {.name = "norm1",
          .kind = OperationKind::memory,
          .moved = PerToken(200),
          .backward_moved = 1.5,
          .split = TensorSplit::replicated};
}
Operation Sum() {
  return {.name = "mlp.reduce",
          .kind = OperationKind::tensor_reduce,
          .moved = PerToken(100),
          .split = TensorSplit::replicated};
}

struct Layer {
  model::LayerSpec spec;
  cluster::Device device = SlowDevice();
  GroupLink link{.members = 4, .bytes_per_second = 1000};

  explicit Layer(std::vector<Operation> operations) { spec.operations = std::move(operations); }
  LayerRequest Request(int64_t tensor = 1) const {
    return {.device = device,
            .arithmetic = MixedArithmetic("bf16"),
            .samples = 1,
            .length = kTokens,
            .tensor = tensor,
            .tensor_link = link};
  }
};

TEST(LayerPrice, TheSlowerOfComputingAndMoving) {
  Layer layer({Product()});
  // 400000 flops take 0.4 s, 3000 activations and 20000 weights of 2 bytes 0.046 s.
  LayerPrices p = PriceLayer(layer.spec, layer.Request());
  EXPECT_DOUBLE_EQ(p.forward.seconds, 0.4);
  EXPECT_DOUBLE_EQ(p.backward_input.seconds, 0.4);
  EXPECT_DOUBLE_EQ(p.backward_weight.seconds, 0.4);
  layer.device.flops_per_second["bf16"] = 1e9;
  p = PriceLayer(layer.spec, layer.Request());
  EXPECT_DOUBLE_EQ(p.forward.seconds, 46000 / kMega);
  EXPECT_DOUBLE_EQ(p.backward_weight.seconds, (6000 + 2 * 80000) / kMega);  // the sum is read and written
}

TEST(LayerPrice, SharesOfThePeakAndLaunches) {
  Layer layer({Product()});
  layer.device.efficiency[0] = cluster::EfficiencyCurve({{1e5, 0.5}, {1e6, 0.5}});
  layer.device.launch_seconds = 0.25;
  const LayerPrices p = PriceLayer(layer.spec, layer.Request());
  EXPECT_DOUBLE_EQ(p.forward.seconds, 0.25 + 0.8);
  EXPECT_FALSE(p.forward.extrapolated);
  layer.device.efficiency[0] = cluster::EfficiencyCurve({{1e6, 0.5}, {1e7, 0.5}});
  EXPECT_TRUE(PriceLayer(layer.spec, layer.Request()).forward.extrapolated);
}

TEST(LayerPrice, TensorParallelGroupsSplitProductsAndRepeatNorms) {
  const Layer layer({Norm(), Product(), Row(), Sum()});
  const LayerPrices one = PriceLayer(layer.spec, layer.Request(1)), four = PriceLayer(layer.spec, layer.Request(4));
  const double norm = 4000 / kMega;
  EXPECT_DOUBLE_EQ(one.forward.seconds, norm + 0.8);
  EXPECT_EQ(one.forward_reduce.seconds, 0);
  // Two passes of 3/4 of 1000 elements of 2 bytes.
  const double sum = 2 * 0.75 * 2000 / 1000;
  EXPECT_DOUBLE_EQ(four.forward_reduce.seconds, sum);
  EXPECT_DOUBLE_EQ(four.forward.seconds, norm + 0.2 + sum);
  EXPECT_DOUBLE_EQ(four.backward_input.seconds, 1.5 * norm + 0.2 + sum);
}

TEST(LayerPrice, SequenceParallelismSplitsNormsAndGathersOnceMore) {
  const Layer layer({Norm(), Product(), Row(), Sum()});
  LayerRequest request = layer.Request(4);
  request.sequence_parallel = true;
  const LayerPrices p = PriceLayer(layer.spec, request);
  const double norm = 4000 / kMega / 4, pass = 0.75 * 2000 / 1000;
  EXPECT_DOUBLE_EQ(p.forward.seconds, norm + 0.2 + 2 * pass);
  EXPECT_DOUBLE_EQ(p.backward_input.seconds, 1.5 * norm + 0.2 + 3 * pass);
}

TEST(LayerPrice, SelectiveRecomputationRunsTheCoreOfAttentionAgain) {
  Operation core{.name = "attn.scores",
                 .kind = OperationKind::attention,
                 .flops = {.per_token_pair = 1000},
                 .moved = PerToken(400),
                 .backward_moved = 2,
                 .selective = true};
  const Layer layer({core, Product()});
  LayerRequest request = layer.Request();
  const LayerPrices keeps = PriceLayer(layer.spec, request);
  request.selective = true;
  const LayerPrices again = PriceLayer(layer.spec, request);
  // Products of activations compute 0.1 s and move 8000 bytes, one after the other.
  const double once = 0.1 + 0.008;
  EXPECT_DOUBLE_EQ(keeps.forward.seconds, 0.4 + once);
  EXPECT_DOUBLE_EQ(again.forward.seconds, keeps.forward.seconds);
  EXPECT_DOUBLE_EQ(again.backward_input.seconds, keeps.backward_input.seconds + once);
}

TEST(LayerPrice, AStackHidesSumsBesideWeightGradients) {
  Layer layer({Product(), Row(), Sum()});
  LayerRequest request = layer.Request(4);
  EXPECT_EQ(PriceLayer(layer.spec, request).hidden_seconds, 0);
  request.stack.overlap_tensor = true;
  request.stack.overlap_cost = 0.25;
  // The sum takes 3 s; beside it there is one weight half of 0.1 s (not the row-parallel product's).
  EXPECT_DOUBLE_EQ(PriceLayer(layer.spec, request).hidden_seconds, 0.75 * 0.1);
  layer.link.bytes_per_second = 1e6;  // 3 ms: all of it
  request.tensor_link = layer.link;
  EXPECT_DOUBLE_EQ(PriceLayer(layer.spec, request).hidden_seconds, 0.75 * 0.003);
}

TEST(LayerPrice, AStackWithoutFusedAccumulationPaysAPass) {
  const Layer layer({Product()});
  LayerRequest request = layer.Request();
  request.stack.fused_accumulation = false;
  // The result of 2 bytes a weight read, the sum of 4 read and written.
  EXPECT_DOUBLE_EQ(PriceLayer(layer.spec, request).backward_weight.seconds, 0.4 + 20000 * 10 / kMega);
}

TEST(LayerPrice, AStackRunsKernelsOfItsOwn) {
  const Layer layer({Norm()});
  LayerRequest request = layer.Request();
  request.stack.passes = {{"norm1", 0.5, 2}, {"other", 100, 100}};
  const LayerPrices p = PriceLayer(layer.spec, request);
  EXPECT_DOUBLE_EQ(p.forward.seconds, 1.5 * 4000 / kMega);
  EXPECT_DOUBLE_EQ(p.backward_input.seconds, 3.5 * 4000 / kMega);
}

}  // namespace
}  // namespace penstock::cost
