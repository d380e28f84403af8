#include "model/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "model/gpt.h"

namespace penstock::model {
namespace {

ModelSpec Gpt(int64_t layers, int64_t vocabulary = 67) {
  return BuildGptSpec({.layers = layers, .hidden = 32, .heads = 4, .vocabulary = vocabulary, .context = 16});
}

// Repeated layers of each stage.
std::vector<int> Blocks(const ModelSpec& spec, const Partition& partition) {
  std::vector<int> counts;
  for (int s = 0; s < partition.stages(); ++s)
    counts.push_back(static_cast<int>(std::count_if(spec.layers.begin() + partition.first[s],
                                                    spec.layers.begin() + partition.first[s + 1],
                                                    [](const LayerSpec& layer) { return layer.repeated; })));
  return counts;
}

TEST(Partition, EvenSpreadsTheRest) {
  EXPECT_EQ(Blocks(Gpt(30), PartitionEven(Gpt(30), 4)), (std::vector<int>{8, 8, 7, 7}));
  EXPECT_EQ(Blocks(Gpt(7), PartitionEven(Gpt(7), 4)), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(PartitionEven(Gpt(4), 1).first, (std::vector<int>{0, 6}));
}

TEST(Partition, EvenGivesTheEndsAStageWhenBlocksRunOut) {
  EXPECT_EQ(PartitionEven(Gpt(4), 5).first, (std::vector<int>{0, 2, 3, 4, 5, 6}));
  EXPECT_EQ(PartitionEven(Gpt(4), 6).first, (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Partition, EveryLayerOnceForAllSizes) {
  for (int layers = 1; layers <= 12; ++layers) {
    const ModelSpec spec = Gpt(layers);
    const std::vector<double> costs = LayerCosts(spec, 1, 16);
    for (int stages = 1; stages <= layers + 2; ++stages) {
      CheckPartition(spec, PartitionEven(spec, stages));
      CheckPartition(spec, PartitionBalanced(spec, costs, stages));
    }
  }
}

TEST(Partition, MoreStagesThanLayersIsRefused) {
  for (const char* text : {"even", "balanced"}) {
    try {
      MakePartition(Gpt(4), text, 7);
      FAIL();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("at most 6 stages"), std::string::npos) << error.what();
    }
  }
}

TEST(Partition, ExplicitCountsMustAddUp) {
  const ModelSpec spec = Gpt(8);
  EXPECT_EQ(Blocks(spec, MakePartition(spec, "3,3,2", 3)), (std::vector<int>{3, 3, 2}));
  EXPECT_EQ(Blocks(spec, MakePartition(spec, "0, 8, 0", 3)), (std::vector<int>{0, 8, 0}));
  EXPECT_THROW(MakePartition(spec, "3,3,1", 3), UserError);
  EXPECT_THROW(MakePartition(spec, "4,4", 3), UserError);
  EXPECT_THROW(MakePartition(spec, "4,0,4", 3), UserError);
  EXPECT_THROW(MakePartition(spec, "4,-1,5", 3), UserError);
  EXPECT_THROW(MakePartition(spec, "evn", 3), UserError);
}

TEST(Partition, BalancedMovesBlocksAwayFromAHeavyHead) {
  const ModelSpec spec = Gpt(10, 20'000);
  const std::vector<int> blocks = Blocks(spec, MakePartition(spec, "balanced", 4));
  EXPECT_EQ(blocks.back(), 0);
  EXPECT_EQ(*std::max_element(blocks.begin(), blocks.end()), 4);
  EXPECT_EQ(blocks.front() + blocks[1] + blocks[2], 10);

  // A head of three blocks' cost, as published: the last stage gets three fewer.
  std::vector<double> cost(12, 1.0);
  cost.front() = 0.5;
  cost.back() = 3.0;
  EXPECT_EQ(Blocks(spec, PartitionBalanced(spec, cost, 4)), (std::vector<int>{3, 3, 3, 1}));
}

// Against all cuts of a short chain.
TEST(Partition, BalancedIsTheBestOfAll) {
  const ModelSpec spec = Gpt(5);
  const std::vector<double> cost = {2, 7, 1, 8, 2, 8, 1};
  double best = 1e300;
  for (int a = 1; a < 6; ++a)
    for (int b = a + 1; b < 7; ++b) {
      const auto sum = [&](int lo, int hi) {
        double t = 0;
        for (int i = lo; i < hi; ++i) t += cost[i];
        return t;
      };
      best = std::min(best, std::max({sum(0, a), sum(a, b), sum(b, 7)}));
    }
  const Partition found = PartitionBalanced(spec, cost, 3);
  double worst = 0;
  for (int s = 0; s < 3; ++s) {
    double total = 0;
    for (int i = found.first[s]; i < found.first[s + 1]; ++i) total += cost[i];
    worst = std::max(worst, total);
  }
  EXPECT_EQ(worst, best);
}

TEST(Partition, ExplainNamesWhatIsWhere) {
  const ModelSpec spec = Gpt(30);
  const std::string text = ExplainPartition(spec, PartitionEven(spec, 4));
  EXPECT_NE(text.find("stage 0: embed + blocks 0-7 ("), std::string::npos) << text;
  EXPECT_NE(text.find("stage 3: blocks 23-29 + head ("), std::string::npos) << text;
  EXPECT_NE(text.find("in all 32 layers"), std::string::npos) << text;
}

}  // namespace
}  // namespace penstock::model
