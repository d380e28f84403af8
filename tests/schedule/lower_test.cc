// Assembly of the mesh and the passes, one by one.
#include "schedule/lower.h"

#include <set>

#include "schedule/lowered.h"

namespace penstock::schedule::testing {
namespace {

std::vector<std::string> Texts(const Schedule& schedule, int rank) {
  std::vector<std::string> texts;
  for (const Action& action : schedule.ranks[rank]) texts.push_back(ToString(action));
  return texts;
}
using Strings = std::vector<std::string>;

Schedule Assembled(const std::string& builder, const LowerSpec& spec) {
  return AssembleCompute(Registry<Builder>::Find(builder), spec);
}

TEST(AssembleCompute, ReplicasRunContiguousMicroBatches) {
  const Schedule schedule = Assembled("gpipe", Mesh(2, 2, 1, 3));
  ASSERT_EQ(schedule.num_ranks(), 4);
  EXPECT_EQ(schedule.route.replica_of, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(Texts(schedule, 1), (Strings{"forward 1.0", "forward 1.1", "backward 1.0", "backward 1.1"}));
  EXPECT_EQ(Texts(schedule, 2), (Strings{"forward 0.2", "backward 0.2"}));
  EXPECT_EQ(schedule.route.rank_of(1, 2), 3);
}

TEST(AssembleCompute, ReplicaWithoutMicroBatchesHoldsItsParameters) {
  const LowerSpec spec = Mesh(4, 2, 1, 2);
  const Schedule schedule = LowerNamed("1f1b", spec);
  EXPECT_EQ(Texts(schedule, 4),
            (Strings{"collective:reduce 0 group 0", "task:norm 0", "collective:gather_statistics 0 group 2",
                     "check:finite_clip 0", "update 0 if 0"}));
  EXPECT_TRUE(Verify(schedule).ok()) << Verify(schedule).ToString();
  // 5 over 4: 2, 1, 1, 1.
  EXPECT_TRUE(Verify(LowerNamed("1f1b", Mesh(4, 2, 1, 5))).ok());
}

TEST(AssembleCompute, HoldersAndGroups) {
  LowerSpec spec = Mesh(2, 2, 2, 4);
  spec.shared_parameters = {{0, 3}, {1, 1}};
  spec.stage_has_parameters = {true, true, false, true};
  const Schedule schedule = Assembled("interleaved-1f1b", spec);
  const auto& units = schedule.holders.units;
  ASSERT_EQ(units.size(), 6u);
  EXPECT_EQ(schedule.groups, (std::vector<std::vector<int32_t>>{{0, 2}, {1, 3}, {0, 1, 2, 3}}));
  EXPECT_EQ(units[0].group, units[0].uses[0].group);
  EXPECT_EQ(units[1].group, 1);
  EXPECT_TRUE(units[2].uses.empty());
  EXPECT_EQ(units[4].uses[1].stage, 3);
  EXPECT_EQ(units[4].group, 2);
  EXPECT_EQ(units[5].uses.size(), 2u);  // both in one stage
  EXPECT_EQ(units[5].group, 1);
}

TEST(AssembleCompute, RefusesWhatCannotBe) {
  const auto refusal = [](const std::function<void(LowerSpec&)>& mutate) -> std::string {
    LowerSpec spec = Mesh(2, 2, 1, 4);
    mutate(spec);
    try {
      LowerNamed("1f1b", spec);
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refusal([](LowerSpec& s) { s.data = 0; }).find("at least 1 replica"), std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) { s.micro_batches = 0; }).find("at least 1 replica"), std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) { s.pipeline = 40000; }).find("more than 32767 stages"), std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) { s.recompute = {true}; }).find("recompute has 1 entries; 2 are needed"),
            std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) { s.shared_parameters = {{0}}; }).find("at least 2 uses"), std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) { s.shared_parameters = {{1, 0}}; }).find("ascend"), std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) {
              s.shared_parameters = {{0, 2}};
            }).find("the last stage is 1"),
            std::string::npos);
  EXPECT_NE(refusal([](LowerSpec& s) { s.placement = "v"; }), "accepted");
}

TEST(SplitBackward, AlwaysAndNever) {
  LowerSpec spec = Mesh(1, 1, 1, 2);
  spec.split_backward = LowerSpec::Split::always;
  spec.check = spec.update = false;
  EXPECT_EQ(Texts(LowerNamed("1f1b", spec), 0), (Strings{"forward 0.0", "backward_input 0.0", "backward_weight 0.0",
                                                         "forward 0.1", "backward_input 0.1", "backward_weight 0.1"}));
  spec = Mesh(1, 2, 1, 2);
  spec.split_backward = LowerSpec::Split::never;
  const Schedule merged = LowerNamed("zb-h1", spec);
  for (const auto& list : merged.ranks)
    for (const Action& action : list)
      EXPECT_TRUE(action.key.kind != Kind::backward_input && action.key.kind != Kind::backward_weight);
  EXPECT_TRUE(Verify(merged).ok());
}

TEST(Recompute, RightBeforeTheBackwardOfFlaggedStages) {
  LowerSpec spec = Mesh(1, 2, 1, 1);
  spec.recompute = {true, false};
  const Schedule schedule = LowerNamed("zb-h1", spec);
  EXPECT_TRUE(schedule.stage_options[0].recompute);
  EXPECT_FALSE(schedule.stage_options[1].recompute);
  // Before the receive: the gradient may still be under way.
  EXPECT_EQ(Texts(schedule, 0)[IndexOf(schedule, 0, "recompute 0.0") + 1], "recv:gradient 1.0 <- 1");
  EXPECT_EQ(Texts(schedule, 0)[IndexOf(schedule, 0, "recompute 0.0") + 2], "backward_input 0.0");
  for (const Action& action : schedule.ranks[1]) EXPECT_NE(action.key.kind, Kind::recompute);
  EXPECT_TRUE(Verify(schedule).ok());
}

TEST(Communication, SendsFollowTheirProducerAndLocalStagesHandOver) {
  LowerSpec spec = Mesh(1, 2, 2, 1);
  spec.placement = "v";
  spec.boundary_bytes = {10, 20, 30};
  spec.check = spec.update = false;
  const Schedule schedule = LowerNamed("zb-v", spec);
  // Stages 1 and 2 are both on rank 1.
  EXPECT_EQ(Texts(schedule, 1),
            (Strings{"recv:activation 0.0 <- 0", "forward 1.0", "forward 2.0", "send:activation 2.0 part 2 -> 0",
                     "recv:gradient 3.0 part 2 <- 0", "backward_input 2.0", "backward_weight 2.0", "backward_input 1.0",
                     "send:gradient 1.0 -> 0", "backward_weight 1.0"}));
  const Action& send = schedule.ranks[1][IndexOf(schedule, 1, "send:activation 2.0 part 2 -> 0")];
  EXPECT_EQ(schedule.sizes[send.bytes].upper_bound, 30);
  EXPECT_EQ(send.stream, Stream::send_channel);
}

TEST(Communication, ImpossibleOrderNamesWhatIsBlocked) {
  Builder builder = Registry<Builder>::Find("gpipe");
  const auto build = builder.build;
  builder.build = [build](const PipelineShape& shape) {
    ComputeOrder order = build(shape);
    order.positions[1] = {};
    order.positions[1].Backward(1, 0);
    order.positions[1].Forward(1, 0);
    return order;
  };
  try {
    Lower(builder, Mesh(1, 2, 1, 1));
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "the order of compute cannot proceed: rank 0 waits at 'backward 0.0' for 'backward 1.0'; rank 1 waits at "
        "'backward 1.0' for 'forward 1.0'");
  }
}

TEST(Reduce, OnlyWhereSeveralRanksHoldAUse) {
  LowerSpec spec = Mesh(1, 2, 1, 2);
  spec.check = spec.update = false;
  for (const auto& list : LowerNamed("1f1b", spec).ranks)
    for (const Action& action : list) EXPECT_NE(action.key.kind, Kind::collective);
}

TEST(Reduce, UsesOfASharedUnitAreSummedEvenOnOneRank) {
  LowerSpec spec = Mesh(1, 1, 1, 1);
  spec.shared_parameters = {{0, 0}};
  spec.check = false;
  const Schedule schedule = LowerNamed("1f1b", spec);
  EXPECT_EQ(Texts(schedule, 0),
            (Strings{"forward 0.0", "backward 0.0", "collective:sum_uses 1 group 0", "update 0", "update 1"}));
  EXPECT_TRUE(Verify(schedule).ok());
}

TEST(Reduce, EarlyAndAfterTheGradientThatANeighbourWaitsFor) {
  const Schedule schedule = LowerNamed("breadth-first", Mesh(2, 2, 2, 4));
  // Stage 3 is complete long before stage 1 on the same ranks.
  const int reduce = IndexOf(schedule, 1, "collective:reduce 3 group 1");
  EXPECT_LT(reduce, IndexOf(schedule, 1, "backward 1.0"));
  EXPECT_LT(IndexOf(schedule, 1, "send:gradient 3.0 part 2 -> 0"), reduce);
}

TEST(Passes, OrderAndSwitches) {
  Strings names;
  for (const Pass& pass : Passes()) names.push_back(pass.name);
  EXPECT_EQ(names, (Strings{"split_backward", "recompute", "communication", "reduce", "check", "update"}));
  LowerSpec spec = Mesh(1, 2, 1, 2);
  spec.check = false;
  spec.communication = false;
  names.clear();
  const Schedule schedule = Lower(Registry<Builder>::Find("1f1b"), spec,
                                  [&](const Pass& pass, const Schedule&) { names.push_back(pass.name); });
  EXPECT_EQ(names, (Strings{"reduce", "update"}));
  EXPECT_EQ(ToString(schedule.ranks[0].back()), "update 0");
}

}  // namespace
}  // namespace penstock::schedule::testing
