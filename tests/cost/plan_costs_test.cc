// Prices of the actions of a small pipeline, from the prices of its layers.
#include "cost/plan_costs.h"

#include <gtest/gtest.h>

#include "cost/devices.h"
#include "cost/layer_price.h"
#include "cost/operator_price.h"
#include "model/gpt.h"
#include "schedule/builder.h"
#include "schedule/lower.h"
#include "schedule/operators.h"

namespace penstock::cost {
namespace {

using schedule::Action;
using schedule::Kind;

constexpr int64_t kLength = 4;

struct Case {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;
  schedule::Schedule schedule;
  std::shared_ptr<const Placement> placement;
  Stack stack;

  explicit Case(int data = 1, int tensor = 1) {
    model::GptConfig config;
    config.layers = 2;
    config.hidden = 8;
    config.heads = 2;
    config.vocabulary = 16;
    config.context = kLength;
    config.tied = false;
    spec = model::BuildGptSpec(config);
    partition = model::MakePartition(spec, "even", 2);
    units = model::MakeUnits(spec, partition);
    schedule::LowerSpec lower;
    lower.data = data;
    lower.pipeline = 2;
    lower.micro_batches = 2 * data;
    lower.boundary_bytes = {2 * kLength * 8};
    for (const model::ModelUnit& unit : units) lower.unit_bytes.push_back(unit.numel * 4);
    lower.stage_has_parameters = {true, true};
    schedule = schedule::Lower(Registry<schedule::Builder>::Find("1f1b"), lower);
    placement = std::make_shared<Placement>(std::make_shared<const cluster::Cluster>(SlowCluster()), tensor, data, 2,
                                            MeshOrder::tensor_data_pipeline);
  }
  PlanCosts Costs() const {
    return PlanCosts({.spec = spec,
                      .partition = partition,
                      .units = units,
                      .schedule = schedule,
                      .placement = *placement,
                      .arithmetic = MixedArithmetic("bf16"),
                      .length = kLength,
                      .optimizer_states = 2,
                      .optimizer = "adamw",
                      .stack = stack});
  }
  // The first of a kind on a rank.
  const Action& First(int rank, Kind kind) const {
    for (const Action& action : schedule.ranks[rank])
      if (action.key.kind == kind) return action;
    throw InternalError("no such action");
  }
  double Seconds(int rank, Kind kind) const { return Costs().PriceOf(rank, First(rank, kind)).seconds; }
};

// Half a boundary of 4 tokens x 8 at 2 bytes: 64 bytes.
constexpr double kBoundary = 64;

TEST(PlanCosts, ComputeIsTheSumOverTheLayersOfAStage) {
  const Case c;
  const cluster::Device device = SlowDevice();
  double forward = 0, backward = 0;
  for (const int layer : {0, 1}) {  // embedding and the first block
    const LayerPrices p =
        PriceLayer(c.spec.layers[layer], {.device = device, .arithmetic = MixedArithmetic("bf16"), .length = kLength});
    forward += p.forward.seconds;
    backward += p.backward_input.seconds + p.backward_weight.seconds;
  }
  EXPECT_DOUBLE_EQ(c.Seconds(0, Kind::forward), forward);
  EXPECT_DOUBLE_EQ(c.Seconds(0, Kind::backward), backward);
}

TEST(PlanCosts, MessagesTakeTheLinkOfTheirLevel) {
  const Case c;
  EXPECT_DOUBLE_EQ(c.Seconds(0, Kind::send), kBoundary / 100);
  EXPECT_DOUBLE_EQ(c.Costs().Latency(c.schedule, 0, 1, c.First(0, Kind::send)), 1);
  EXPECT_EQ(c.Seconds(1, Kind::recv), 0);
  // Cells of 4 devices are nodes: the other level, a quarter of the boundary each.
  const Case cells(1, 4);
  EXPECT_DOUBLE_EQ(cells.Seconds(0, Kind::send), kBoundary / 4 / 10);
}

TEST(PlanCosts, ARankMayWaitForWhatItSends) {
  Case c;
  const double forward = c.Seconds(0, Kind::forward), last = c.Seconds(1, Kind::forward);
  c.stack.waits_for_sends = true;
  EXPECT_DOUBLE_EQ(c.Seconds(0, Kind::forward), forward + kBoundary / 100 + 1);
  EXPECT_DOUBLE_EQ(c.Seconds(1, Kind::forward), last);  // sends nothing on
  EXPECT_EQ(c.Seconds(0, Kind::send), 0);
  EXPECT_EQ(c.Costs().Latency(c.schedule, 0, 1, c.First(0, Kind::send)), 0);
}

TEST(PlanCosts, SharesOfABoundaryAreGathered) {
  Case c(1, 4);
  EXPECT_EQ(c.Seconds(1, Kind::recv), 0);
  c.stack.gather_boundary = true;
  EXPECT_DOUBLE_EQ(c.Seconds(1, Kind::recv), 3 + 0.75 * kBoundary / 100);
}

TEST(PlanCosts, GradientsAreReducedOverTheirHolders) {
  Case c(2);
  const Action& reduce = c.First(0, Kind::collective);
  ASSERT_EQ(schedule::OpName(reduce.key.op), schedule::ops::kReduce);
  const double bytes = 4.0 * static_cast<double>(c.units[reduce.key.unit.stage].numel);
  // Two members of a node: two passes of half the bytes, one step each.
  const double plain = 2 * (1 + 0.5 * bytes / 100);
  EXPECT_DOUBLE_EQ(c.Costs().PriceOf(0, reduce).seconds, plain);
  c.stack.flattened_reduce = true;
  EXPECT_DOUBLE_EQ(c.Costs().PriceOf(0, reduce).seconds, plain + 2 * 2 * bytes / 1e6);
  c.stack.flattened_reduce = false;
  c.stack.overlap_reduce = true;
  c.stack.overlap_cost = 0.25;
  const double backward = c.Costs().BackwardSeconds(0, reduce.key.unit.stage);
  ASSERT_LT(backward, plain);
  EXPECT_DOUBLE_EQ(c.Costs().PriceOf(0, reduce).seconds, plain - 0.75 * backward);
}

TEST(PlanCosts, UpdatesMoveStatesAndMasterWeights) {
  Case c;
  const auto n = static_cast<double>(c.units[c.First(0, Kind::update).key.unit.stage].numel);
  // Gradient 4, master weights and two states read and written 24, weights 2.
  EXPECT_DOUBLE_EQ(c.Seconds(0, Kind::update), n * 30 / 1e6);
  c.stack.update_bytes = 10;
  EXPECT_DOUBLE_EQ(c.Seconds(0, Kind::update), n * 40 / 1e6);
}

TEST(PlanCosts, EveryOperatorHasAPrice) {
  std::vector<std::string> operators;
  for (const std::string& name : Registry<schedule::Operator>::Names())
    if (name.rfind("test.", 0) != 0) operators.push_back(name);  // those of other tests of this program
  EXPECT_EQ(Registry<OperatorPrice>::Names(), operators);
}

TEST(Stacks, AllSayWhatTheyAreAndWhereFrom) {
  for (const auto& [name, stack] : Registry<Stack>::All()) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(stack.summary.empty());
    EXPECT_EQ(stack.source.empty(), name == "plain");
    EXPECT_GE(stack.overlap_cost, 0);
    EXPECT_LT(stack.overlap_cost, 1);
    // Extra kernels name operations that there are.
    model::GptConfig config;
    config.attention = "reference";
    config.dropout = config.attention_dropout = 0.1;
    const model::ModelSpec spec = model::BuildGptSpec(config);
    for (const ExtraPasses& extra : stack.passes) {
      bool found = false;
      for (const model::LayerSpec& layer : spec.layers)
        for (const model::Operation& op : layer.operations)
          found = found || op.name == extra.operation || op.name.ends_with("." + extra.operation);
      EXPECT_TRUE(found) << extra.operation;
    }
  }
}

}  // namespace
}  // namespace penstock::cost
