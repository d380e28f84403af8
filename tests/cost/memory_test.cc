// Predicted memory against sums made by hand, on a model small enough for that.
#include "cost/memory.h"

#include <gtest/gtest.h>

#include <string>

#include "model/gpt.h"
#include "schedule/builder.h"
#include "schedule/lower.h"

namespace penstock::cost {
namespace {

constexpr int64_t kSamples = 2, kLength = 4, kTokens = kSamples * kLength, kFloat = 4;

model::ModelSpec Spec(int64_t layers = 2) {
  model::GptConfig config;
  config.family = "gpt2";
  config.layers = layers;
  config.hidden = 8;
  config.heads = 2;
  config.vocabulary = 16;
  config.context = kLength;
  config.loss_chunk = 4;
  config.tied = false;
  return model::BuildGptSpec(config);
}

struct Layout {
  int data = 1, pipeline = 1, micro_batches = 1;
  bool recompute = false, reproducible = false;
  std::string schedule = "gpipe";
  std::string stages = "even";
  int layers = 2;
};

struct Case {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;
  schedule::Schedule schedule;
  MemoryEstimate memory;

  explicit Case(const Layout& layout) : spec(Spec(layout.layers)) {
    partition = model::MakePartition(spec, layout.stages, layout.pipeline);
    units = model::MakeUnits(spec, partition);
    schedule::LowerSpec lower;
    lower.data = layout.data;
    lower.pipeline = layout.pipeline;
    lower.micro_batches = layout.micro_batches;
    for (const model::ModelUnit& unit : units) lower.unit_bytes.push_back(unit.numel * kFloat);
    for (int s = 0; s < layout.pipeline; ++s) lower.stage_has_parameters.push_back(true);
    for (int s = 0; s + 1 < layout.pipeline; ++s) lower.boundary_bytes.push_back(Boundary());
    lower.recompute.assign(layout.pipeline, layout.recompute);
    schedule = schedule::Lower(Registry<schedule::Builder>::Find(layout.schedule), lower);
    memory = EstimateMemory({.spec = spec,
                             .partition = partition,
                             .units = units,
                             .schedule = schedule,
                             .samples = kSamples,
                             .length = kLength,
                             .optimizer_states = 2,
                             .reproducible = layout.reproducible,
                             .checkpoints = true});
  }
  static int64_t Boundary() { return kTokens * 8 * kFloat; }
  int64_t Saved(int stage) const {
    int64_t bytes = 0;
    for (int l = partition.first[stage]; l < partition.first[stage + 1]; ++l)
      bytes += model::SavedBytes(spec.layers[l], kSamples, kLength, model::Precision::fp32);
    return bytes;
  }
  int64_t Parameters(int stage) const { return units[stage].numel * kFloat; }
  int64_t PeakOf(int rank, BufferClass c) const { return memory.ranks[rank].peak_by_class[static_cast<size_t>(c)]; }
};

constexpr int64_t kInputs = 16 * kTokens;  // tokens and labels of a micro-batch, 64-bit

TEST(Memory, OneRankOneMicroBatchByHand) {
  const Case c({});
  const RankMemory& r = c.memory.ranks[0];
  EXPECT_EQ(r.persistent, 3 * c.Parameters(0));
  EXPECT_EQ(c.PeakOf(0, BufferClass::parameter), c.spec.parameter_count() * kFloat);
  EXPECT_EQ(c.PeakOf(0, BufferClass::optimizer_state), 2 * c.spec.parameter_count() * kFloat);
  EXPECT_EQ(c.PeakOf(0, BufferClass::gradient), c.Parameters(0));
  EXPECT_EQ(c.PeakOf(0, BufferClass::activation), c.Saved(0) + kInputs);
  EXPECT_EQ(c.PeakOf(0, BufferClass::boundary), 0);
  EXPECT_EQ(c.PeakOf(0, BufferClass::message), 0);
  int64_t sum = r.workspace;
  for (const int64_t bytes : r.at_peak) sum += bytes;
  EXPECT_EQ(r.step, sum);
  EXPECT_EQ(r.load_copy, 4 * 8 * 8 * kFloat);  // the largest tensor: 32 x 8 of a block
  EXPECT_EQ(c.memory.machine(), c.memory.process + r.peak() + r.cached);
}

TEST(Memory, AFillingPipelineKeepsEveryMicroBatchAndRecomputationItsInputs) {
  const Case kept({.pipeline = 2, .micro_batches = 4});
  EXPECT_EQ(kept.PeakOf(0, BufferClass::activation), 4 * (kept.Saved(0) + kInputs));
  // Stage 1 too: GPipe runs all forwards before the first backward.
  EXPECT_EQ(kept.PeakOf(1, BufferClass::activation), 4 * (kept.Saved(1) + kInputs));
  const Case again({.pipeline = 2, .micro_batches = 4, .recompute = true});
  // Stage 0 has no inputs but its tokens; one micro-batch at a time is there in full, with outputs of its own.
  EXPECT_EQ(again.PeakOf(0, BufferClass::activation), again.Saved(0) + Case::Boundary() + 4 * kInputs);
  EXPECT_EQ(again.PeakOf(1, BufferClass::activation), again.Saved(1) + 3 * Case::Boundary() + 4 * kInputs);
}

TEST(Memory, OneFOneBKeepsAsManyMicroBatchesAsStagesFollow) {
  const Case c({.pipeline = 2, .micro_batches = 4, .schedule = "1f1b"});
  EXPECT_EQ(c.PeakOf(0, BufferClass::activation), 2 * c.Saved(0) + 4 * kInputs);
  EXPECT_GE(c.PeakOf(1, BufferClass::activation), c.Saved(1) + kInputs);
  EXPECT_LT(c.PeakOf(1, BufferClass::activation), 2 * c.Saved(1));
}

TEST(Memory, PartialSumsFollowTheTree) {
  const Case fast({.micro_batches = 8}), tree({.micro_batches = 8, .reproducible = true});
  // One running sum and the leaf; the tree has log2(8) = 3 nodes waiting when the last leaf arrives.
  EXPECT_EQ(fast.PeakOf(0, BufferClass::gradient), 2 * fast.Parameters(0));
  EXPECT_EQ(tree.PeakOf(0, BufferClass::gradient), 4 * tree.Parameters(0));
}

TEST(Memory, UnevenStagesAreNotAveraged) {
  const Case c({.pipeline = 2, .micro_batches = 4, .stages = "4,1", .layers = 5});
  EXPECT_EQ(c.memory.ranks[0].persistent, 3 * c.Parameters(0));
  EXPECT_EQ(c.memory.ranks[1].persistent, 3 * c.Parameters(1));
  EXPECT_GT(c.memory.ranks[0].peak(), 2 * c.memory.ranks[1].peak());
  EXPECT_EQ(c.memory.largest_rank(), 0);
}

TEST(Memory, EveryReplicaOfAMachineCounts) {
  const Case one({.micro_batches = 4}), four({.data = 4, .micro_batches = 4});
  ASSERT_EQ(four.memory.ranks.size(), 4u);
  for (const RankMemory& r : four.memory.ranks) EXPECT_EQ(r.persistent, one.memory.ranks[0].persistent);
  EXPECT_GT(four.memory.machine() - four.memory.process, 4 * one.memory.ranks[0].persistent);
}

TEST(Memory, ASplitBackwardKeepsTheOperandsOfItsWeightHalf) {
  const model::ModelSpec spec = Spec();
  // Both norms' outputs, attention output and activation; gradients of qkv, projection, fc1 and fc2.
  const int64_t h = 8, operands = 3 * h + 4 * h, outputs = 3 * h + h + 4 * h + h;
  EXPECT_EQ(StashBytes(spec, 1, kSamples, kLength, model::Precision::fp32), kTokens * (operands + outputs) * 4);
  EXPECT_EQ(StashBytes(spec, 1, kSamples, kLength, model::Precision::bf16), kTokens * (operands * 2 + outputs * 4));
  EXPECT_EQ(StashBytes(spec, 1, kSamples, kLength, model::Precision::fp16), kTokens * (operands * 2 + outputs * 4));
  EXPECT_EQ(StashBytes(spec, 0, kSamples, kLength, model::Precision::fp32), 0);  // the embedding has nothing to defer
}

TEST(Memory, TheLargestPartIsNamed) {
  RankMemory r;
  r.at_peak[static_cast<size_t>(BufferClass::gradient)] = 5;
  r.workspace = 4;
  EXPECT_EQ(r.LargestPart(), "gradient");
  r.workspace = 6;
  EXPECT_EQ(r.LargestPart(), "workspace");
}

}  // namespace
}  // namespace penstock::cost
