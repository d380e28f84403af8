// Orders that papers and other systems publish, action by action.
#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/builder.h"

namespace penstock::schedule {
namespace {

// "F2.1": kind, stage, micro-batch; the stage is left out when each position has one.
std::string Order(const std::string& builder, const PipelineShape& shape, int position) {
  const ComputeOrder order = BuildCompute(Registry<Builder>::Find(builder), shape);
  std::string text;
  for (const ComputeOp& op : order.positions[position].ops()) {
    const char letter = op.kind == Kind::forward          ? 'F'
                        : op.kind == Kind::backward       ? 'B'
                        : op.kind == Kind::backward_input ? 'I'
                                                          : 'W';
    if (!text.empty()) text += ' ';
    text += shape.chunks == 1 ? fmt::format("{}{}", letter, op.micro_batch)
                              : fmt::format("{}{}.{}", letter, op.stage, op.micro_batch);
  }
  return text;
}

std::string Refusal(const std::string& builder, const PipelineShape& shape) {
  try {
    BuildCompute(Registry<Builder>::Find(builder), shape);
  } catch (const UserError& error) {
    return error.what();
  }
  return "built";
}

TEST(BuilderOrders, InterleavedTwoRanksFourMicroBatches) {
  const PipelineShape shape{2, 2, 4, {}};
  EXPECT_EQ(Order("interleaved-1f1b", shape, 0),
            "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3");
  EXPECT_EQ(Order("interleaved-1f1b", shape, 1),
            "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3");
}

TEST(BuilderOrders, ZeroBubbleH1FourRanksSixMicroBatches) {
  const PipelineShape shape{4, 1, 6, {}};
  EXPECT_EQ(Order("zb-h1", shape, 0), "F0 F1 F2 F3 I0 W0 F4 I1 W1 F5 I2 W2 I3 W3 I4 W4 I5 W5");
  EXPECT_EQ(Order("zb-h1", shape, 3), "F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 W3 W4 W5");
}

TEST(BuilderOrders, OneForwardOneBackward) {
  const PipelineShape shape{4, 1, 5, {}};
  EXPECT_EQ(Order("1f1b", shape, 1), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(Order("eager-1f1b", shape, 2), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(Order("gpipe", shape, 2), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
}

TEST(BuilderOrders, AShareRunsItsStagesInOrder) {
  EXPECT_EQ(Order("1f1b", {2, 2, 2, {}}, 1), "F2.0 F3.0 B3.0 B2.0 F2.1 F3.1 B3.1 B2.1");
}

TEST(BuilderOrders, LayeredAndBreadthFirstDifferInTheBackward) {
  EXPECT_EQ(Order("layered", {2, 2, 2, "loop"}, 0), "F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1");
  EXPECT_EQ(Order("layered", {2, 2, 2, "block"}, 0), "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1");
  EXPECT_EQ(Order("breadth-first", {2, 2, 2, {}}, 0), "F0.0 F0.1 F2.0 F2.1 B2.1 B2.0 B0.1 B0.0");
}

TEST(BuilderOrders, ShortBlockKeepsTheOrderOfAFullOne) {
  EXPECT_EQ(Order("interleaved-1f1b", {2, 2, 3, {}}, 1), "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 B1.1 F3.2 B3.2 B1.2");
}

TEST(BuilderOrders, ZeroBubbleV) {
  EXPECT_EQ(Order("zb-v", {2, 2, 1, {}}, 0), "F0.0 F3.0 I3.0 W3.0 I0.0 W0.0");
  EXPECT_EQ(Order("zb-v", {2, 2, 3, {}}, 1),
            "F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0 F2.2 I2.1 W2.1 I1.1 I2.2 I1.2 W1.1 W2.2 W1.2");
}

TEST(BuilderOrders, RefusalsSayWhatWouldWork) {
  EXPECT_EQ(Refusal("zb-v", {2, 3, 4, {}}), "schedule 'zb-v': a V has 2 chunks per rank, not 3");
  EXPECT_EQ(
      Refusal("interleaved-1f1b", {2, 1, 4, {}}),
      "schedule 'interleaved-1f1b': it interleaves at least 2 chunks per rank; with 1 chunk use 1f1b or eager-1f1b");
  EXPECT_EQ(Refusal("zb-v", {2, 2, 4, "loop"}), "schedule 'zb-v' does not run on a 'loop' route; it takes v");
  EXPECT_EQ(Refusal("1f1b", {0, 1, 4, {}}),
            "schedule '1f1b' needs at least 1 rank, 1 chunk and 1 micro-batch, not 0, 1 and 4");
  EXPECT_EQ(Refusal("gpipe", {32768, 1, 1, {}}),
            "32768 ranks with 1 chunks are 32768 stages; at most 32767 can be numbered");
}

// The list of builders is a golden: neither linker nor CMake can lose one.
TEST(BuilderOrders, RegisteredNames) {
  EXPECT_EQ(Registry<Builder>::Names(),
            (std::vector<std::string>{"1f1b", "breadth-first", "eager-1f1b", "gpipe", "interleaved-1f1b", "layered",
                                      "zb-h1", "zb-h2", "zb-v"}));
}

}  // namespace
}  // namespace penstock::schedule
