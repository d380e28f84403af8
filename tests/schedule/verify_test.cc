// Every fault code from a small mutation of a good schedule, in words.
#include "schedule/verify.h"

#include <set>

#include "schedule/buffers.h"
#include "schedule/lowered.h"
#include "schedule/passes/make_action.h"

namespace penstock::schedule::testing {
namespace {

// An operator that only frees: no action of a plain step frees without reading.
const RegisterOperator kFreeGraph{{
    .name = "test.free_graph",
    .kind = Kind::task,
    .summary = "frees a saved graph",
    .effects =
        [](const Schedule&, int, const Action& a, std::vector<Effect>& effects) {
          effects.push_back({SavedGraph(a.key.unit.stage, a.key.micro_batch), Access::free});
        },
}};

Schedule Good() { return LowerNamed("1f1b", Mesh(2, 2, 1, 4)); }
Schedule GoodSplit() { return LowerNamed("zb-h1", Mesh(1, 2, 1, 3)); }

TEST(Verify, GoodSchedulesHaveNoFault) {
  for (const Schedule& schedule : {Good(), GoodSplit()}) {
    const VerifyReport report = Verify(schedule);
    EXPECT_TRUE(report.ok()) << report.ToString();
    EXPECT_EQ(report.actions, schedule.num_actions());
    EXPECT_NE(report.ToString().find("eager, channelled, blocking transport: completes"), std::string::npos);
  }
}

TEST(Verify, EmptySchedule) {
  EXPECT_FAULT(Verify(Schedule{}), FaultCode::malformed, "the schedule is empty");
  Schedule schedule = Good();
  for (auto& list : schedule.ranks) list.clear();
  EXPECT_FAULT(Verify(schedule), FaultCode::malformed, "the schedule is empty");
}

TEST(Verify, IndicesOutOfRange) {
  const auto broken = [](const std::function<void(Schedule&)>& mutate) {
    Schedule schedule = Good();
    mutate(schedule);
    return Verify(schedule);
  };
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][0].key.unit.stage = 9; }), FaultCode::malformed,
               "names stage 9 of 2");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][0].key.micro_batch = 4; }), FaultCode::malformed,
               "names micro-batch 4 of 4");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][1].peer_or_group = 4; }), FaultCode::malformed,
               "names rank 4 as its peer");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][1].peer_or_group = 0; }), FaultCode::malformed,
               "names rank 0 as its peer");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][1].key.op = kNoOp; }), FaultCode::malformed, "needs an operator");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][0].key.op = 1; }), FaultCode::malformed,
               "does not take an operator");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][0].stream = Stream::group_queue; }), FaultCode::malformed,
               "cannot be on stream");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks[0][0].bytes = 7; }), FaultCode::malformed, "has size 7 of 1");
  EXPECT_FAULT(broken([](Schedule& s) {
                 s.ranks[0][0].extra_edges = {0, 1};
               }),
               FaultCode::malformed, "edges beyond the table");
  EXPECT_FAULT(broken([](Schedule& s) { s.route.placements[0][1] = 2; }), FaultCode::malformed, "position 2 of 2");
  EXPECT_FAULT(broken([](Schedule& s) { s.groups[0][1] = 17; }), FaultCode::malformed, "names rank 17");
  EXPECT_FAULT(broken([](Schedule& s) { s.ranks.pop_back(); }), FaultCode::malformed, "there are 3 ranks");
}

TEST(Verify, VScheduleOnLoopRoute) {
  Schedule schedule = LowerNamed("zb-v", Mesh(1, 2, 2, 4));
  ASSERT_TRUE(Verify(schedule).ok());
  schedule.route.placements[0] = MakePlacement("loop", 2, 4);
  EXPECT_FAULT(Verify(schedule), FaultCode::route,
               "'forward 3.0' is on rank 0, but the route puts stage 3 of micro-batch 0 on rank 1");
}

TEST(Verify, MessageThatTheRouteDoesNotKnow) {
  Schedule schedule = LowerNamed("1f1b", Mesh(1, 3, 1, 2));
  for (const int r : {0, 1}) {
    auto& action =
        schedule.ranks[r][IndexOf(schedule, r, r == 0 ? "send:activation 0.0 -> 1" : "recv:activation 0.0 <- 0")];
    action.key.part = 1;
  }
  EXPECT_FAULT(Verify(schedule), FaultCode::route, "carries edge 1 (1 -> 2), for which stage 0 does not make it");
}

TEST(Verify, MissingWeightHalf) {
  Schedule schedule = GoodSplit();
  Remove(schedule, 1, "backward_weight 1.2");
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::missing_compute,
               "stage 1 of micro-batch 2 has no weight half of its backward (backward_weight); rank 1 should have it");
  EXPECT_FAULT(report, FaultCode::leak, "rank 1 still holds the weight stash of 1.2 at the end of the step");
}

TEST(Verify, MissingComputeOfEveryKind) {
  Schedule schedule = Good();
  Remove(schedule, 0, "forward 0.1");
  EXPECT_FAULT(Verify(schedule), FaultCode::missing_compute, "stage 0 of micro-batch 1 has no forward");
  schedule = Good();
  Remove(schedule, 0, "backward 0.1");
  EXPECT_FAULT(Verify(schedule), FaultCode::missing_compute, "stage 0 of micro-batch 1 has no backward;");
  schedule = GoodSplit();
  Remove(schedule, 0, "backward_input 0.1");
  EXPECT_FAULT(Verify(schedule), FaultCode::missing_compute, "no input half of its backward (backward_input)");
}

TEST(Verify, DuplicateCompute) {
  Schedule schedule = Good();
  auto& list = schedule.ranks[0];
  list.insert(list.begin() + IndexOf(schedule, 0, "backward 0.1"), MakeCompute(Kind::backward, 0, 0));
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::duplicate_compute, "'backward 0.0' on rank 0 computes what was computed before");
  EXPECT_FAULT(report, FaultCode::use_after_free,
               "'backward 0.0' on rank 0 reads the saved graph of 0.0, which is freed since 'backward 0.0'");
}

TEST(Verify, UnmatchedMessages) {
  Schedule schedule = Good();
  Remove(schedule, 1, "recv:activation 0.1 <- 0");
  VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::unmatched_message, "'send:activation 0.1 -> 1' on rank 0 has no receiver: rank 1");
  EXPECT_FAULT(report, FaultCode::use_before_allocation, "'forward 1.1' on rank 1 reads the boundary of 0.1 edge 0");
  EXPECT_FAULT(report, FaultCode::deadlock,
               "rank 0 waits at 'send:activation 0.1 -> 1' for rank 1, which never receives it");
  schedule = Good();
  Remove(schedule, 0, "send:activation 0.1 -> 1");
  report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::unmatched_message, "'recv:activation 0.1 <- 0' on rank 1 has no sender: rank 0");
  EXPECT_FALSE(report.transports[static_cast<size_t>(Transport::eager)].completes);
}

TEST(Verify, SwappedMessages) {
  Schedule schedule = Good();
  Swap(schedule, 0, "send:activation 0.0 -> 1", "send:activation 0.1 -> 1");
  EXPECT_FAULT(Verify(schedule), FaultCode::reordered_messages,
               "message 0 from rank 0 to rank 1: rank 0 sends 'send:activation 0.1 -> 1', rank 1 expects "
               "'recv:activation 0.0 <- 0'");
}

TEST(Verify, CollectiveThatOneRankDoesNotIssue) {
  Schedule schedule = Good();
  Remove(schedule, 2, "collective:reduce 0 group 0");
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::collective_order,
               "ranks 0 and 2 issue the collectives of group 0 in different orders");
  EXPECT_FAULT(report, FaultCode::collective_order, "rank 0: 'collective:reduce 0'; rank 2: none");
  EXPECT_FAULT(report, FaultCode::deadlock, "'collective:reduce 0 group 0' for rank 2, which never joins it");
}

TEST(Verify, OverlappingGroupsInARing) {
  // Three ranks, a group for every two of them, every rank starts with the next group: each group has one order only,
  // and still all wait.
  Schedule schedule;
  schedule.graph = StageGraph::Chain(3);
  schedule.stage_options.resize(3);
  schedule.route = {
      .pipeline_size = 3, .placements = {{0, 1, 2}}, .replica_of = {0}, .placement_of = {}, .overrides = {}};
  schedule.ranks.resize(3);
  schedule.groups = {{0, 1}, {1, 2}, {0, 2}};
  const std::vector<std::vector<int>> order = {{0, 2}, {1, 0}, {2, 1}};
  for (int r = 0; r < 3; ++r)
    for (const int g : order[r]) schedule.ranks[r].push_back(MakeCollective(ops::kGatherStatistics, Unit{}, 0, g));
  VerifyOptions options;
  options.expect_coverage = false;
  const VerifyReport report = Verify(schedule, options);
  EXPECT_FAULT(
      report, FaultCode::deadlock,
      "deadlock under blocking transport: rank 0 waits at 'collective:gather_statistics 0 group 0' for rank 1, which "
      "waits at 'collective:gather_statistics 0 group 1' for rank 2, which waits at "
      "'collective:gather_statistics 0 group 2' for rank 0");
  EXPECT_FALSE(HasFault(report, FaultCode::collective_order)) << report.ToString();
}

TEST(Verify, UseBeforeAllocation) {
  Schedule schedule = GoodSplit();
  MoveBefore(schedule, 1, "backward_weight 1.0", "backward_input 1.0");
  EXPECT_FAULT(Verify(schedule), FaultCode::use_before_allocation,
               "'backward_weight 1.0' on rank 1 reads the weight stash of 1.0, which nothing has allocated before");
}

TEST(Verify, UseAfterFree) {
  Schedule schedule = GoodSplit();
  auto& list = schedule.ranks[1];
  list.insert(list.begin() + IndexOf(schedule, 1, "backward_weight 1.0") + 1, MakeCompute(Kind::backward_weight, 1, 0));
  EXPECT_FAULT(
      Verify(schedule), FaultCode::use_after_free,
      "'backward_weight 1.0' on rank 1 reads the weight stash of 1.0, which is freed since 'backward_weight 1.0'");
}

TEST(Verify, DoubleAllocation) {
  Schedule schedule = Good();
  auto& list = schedule.ranks[0];
  list.insert(list.begin(), list[0]);
  EXPECT_FAULT(Verify(schedule), FaultCode::double_allocation,
               "'forward 0.0' on rank 0 allocates the saved graph of 0.0, which is live since 'forward 0.0'");
}

TEST(Verify, Leak) {
  Schedule schedule = Good();
  auto& list = schedule.ranks[1];
  // Stage 1 recomputes, but micro-batch 0 never does.
  schedule.stage_options[1].recompute = true;
  for (int m = 1; m < 2; ++m)
    list.insert(list.begin() + IndexOf(schedule, 1, "backward 1." + std::to_string(m)),
                MakeCompute(Kind::recompute, 1, m));
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(
      report, FaultCode::leak,
      "rank 1 still holds the saved inputs of 1.0 at the end of the step: nothing frees it after 'forward 1.0'");
  EXPECT_FAULT(report, FaultCode::use_before_allocation, "'backward 1.0' on rank 1 reads the saved graph of 1.0");
}

TEST(Verify, DoubleFree) {
  Schedule schedule = Good();
  auto& list = schedule.ranks[1];
  list.insert(list.begin() + IndexOf(schedule, 1, "backward 1.1") + 1,
              MakeAction(Kind::task, {0, 1}, 1, FindOp("test.free_graph")));
  EXPECT_FAULT(Verify(schedule), FaultCode::double_free,
               "'task:test.free_graph 1.1' on rank 1 frees the saved graph of 1.1 again after 'backward 1.1'");
}

TEST(Verify, ReducedTooEarly) {
  Schedule schedule = Good();
  for (const int r : {0, 2}) {
    const std::string last = r == 0 ? "backward 0.1" : "backward 0.3";
    MoveBefore(schedule, r, "collective:reduce 0 group 0", last);
  }
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::reduced_too_early, "use 0 of unit 0 is not complete: 'backward 0.1'");
  EXPECT_FAULT(report, FaultCode::reduced_too_early, "comes later");
}

TEST(Verify, ReducedTwice) {
  Schedule schedule = Good();
  for (const int r : {0, 2}) {
    auto& list = schedule.ranks[r];
    const int at = IndexOf(schedule, r, "collective:reduce 0 group 0");
    list.insert(list.begin() + at, list[at]);
  }
  EXPECT_FAULT(Verify(schedule), FaultCode::duplicate_compute, "the same use was reduced before");
}

TEST(Verify, UpdatedTooEarly) {
  // Before the reduction.
  Schedule schedule = Good();
  for (const int r : {0, 2}) Remove(schedule, r, "collective:reduce 0 group 0");
  VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::updated_too_early, "use 0 of unit 0 (stage 0) is not reduced over its 2 holders yet");
  EXPECT_FAULT(report, FaultCode::updated_too_early, "'task:norm 0' on rank 0");
  // Before the check that guards it.
  schedule = Good();
  MoveBefore(schedule, 1, "update 1 if 0", "check:finite_clip 0");
  EXPECT_FAULT(Verify(schedule), FaultCode::updated_too_early, "no check sets predicate 0 before it");
  // Unguarded, before the check.
  schedule.ranks[1][IndexOf(schedule, 1, "update 1 if 0")].guard = -1;
  EXPECT_FAULT(Verify(schedule), FaultCode::updated_too_early, "the check of the step comes after it");
  // Before the uses of a shared parameter are summed.
  LowerSpec spec = Mesh(1, 2, 1, 2);
  spec.shared_parameters = {{0, 1}};
  schedule = LowerNamed("gpipe", spec);
  for (const int r : {0, 1})
    Remove(schedule, r, ToString(schedule.ranks[r][IndexOf(schedule, r, "collective:sum_uses 2 group 2")]));
  EXPECT_FAULT(Verify(schedule), FaultCode::updated_too_early, "the 2 uses of shared unit 2 are not summed yet");
}

TEST(Verify, MissingUpdate) {
  Schedule schedule = Good();
  Remove(schedule, 3, "update 1 if 0");
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::missing_update, "rank 3 holds parameter unit 1 and does not update it");
  EXPECT_FAULT(report, FaultCode::leak, "rank 3 still holds the gradient of 1 use 0");
}

TEST(Verify, DeadlockOnlyWhereTheContractPromises) {
  Schedule schedule = LowerNamed("1f1b", Mesh(1, 2, 1, 4));
  // Rank 1 sends its gradient only after it has received the next activation, and rank 0 the reverse: fine when sends
  // are buffered or channels are their own, not in one queue.
  MoveBefore(schedule, 0, "recv:gradient 1.0 <- 1", "send:activation 0.1 -> 1");
  MoveBefore(schedule, 1, "recv:activation 0.1 <- 0", "send:gradient 1.0 -> 0");
  VerifyReport report = Verify(schedule);
  EXPECT_TRUE(report.transports[static_cast<size_t>(Transport::channelled)].completes) << report.ToString();
  EXPECT_FALSE(report.transports[static_cast<size_t>(Transport::blocking)].completes);
  EXPECT_FAULT(report, FaultCode::deadlock, "deadlock under blocking transport: rank 0 waits at");
  schedule.contract.deadlock_free[static_cast<size_t>(Transport::blocking)] = false;
  report = Verify(schedule);
  EXPECT_FALSE(HasFault(report, FaultCode::deadlock, "blocking"));
  EXPECT_NE(report.ToString().find("blocking transport: does not complete: rank 0 waits"), std::string::npos);
}

TEST(Verify, ExplicitEdgesAlsoBetweenRanks) {
  Schedule schedule = Good();
  // The first forward of rank 0 waits for an action of the other replica: fine.
  schedule.edges.push_back({2, IndexOf(schedule, 2, "forward 0.2")});
  schedule.ranks[0][0].extra_edges = {0, 1};
  EXPECT_TRUE(Verify(schedule).ok());
  // For its own backward: a cycle under every transport.
  schedule.edges.push_back({0, IndexOf(schedule, 0, "backward 0.0")});
  schedule.ranks[0][0].extra_edges = {1, 1};
  const VerifyReport report = Verify(schedule);
  for (const TransportVerdict& verdict : report.transports) EXPECT_FALSE(verdict.completes);
  EXPECT_FAULT(report, FaultCode::deadlock, "'forward 0.0' for 'backward 0.0'");
}

TEST(Verify, ComputeOnlySchedules) {
  const Builder& builder = Registry<Builder>::Find("1f1b");
  Schedule schedule = AssembleCompute(builder, Mesh(1, 3, 1, 4));
  VerifyOptions options;
  options.expect_messages = false;
  options.expect_updates = false;
  EXPECT_TRUE(Verify(schedule, options).ok()) << Verify(schedule, options).ToString();
  // The last stage takes the micro-batches in an order that the warm-up of the first cannot feed.
  auto& list = schedule.ranks[2];
  std::swap(list[0], list[2]);
  EXPECT_FAULT(Verify(schedule, options), FaultCode::use_before_allocation, "backward 2.0");
}

TEST(Verify, KeepsAtMostSoManyFaults) {
  Schedule schedule = LowerNamed("gpipe", Mesh(1, 2, 1, 50));
  schedule.route.placements[0] = {1, 0};
  VerifyOptions options;
  options.max_faults = 5;
  const VerifyReport report = Verify(schedule, options);
  EXPECT_LE(report.faults.size(), 5u);
  EXPECT_GT(report.faults_left_out, 100);
  EXPECT_NE(report.ToString().find("more\n"), std::string::npos);
}

TEST(Verify, PeaksCountBuffersAndBytes) {
  LowerSpec spec = Mesh(1, 2, 1, 4);
  spec.boundary_bytes = {1000};
  spec.unit_bytes = {0, 0};
  const VerifyReport gpipe = Verify(LowerNamed("gpipe", spec));
  const VerifyReport one_f_one_b = Verify(LowerNamed("1f1b", spec));
  const auto activations = [](const VerifyReport& report, int rank) {
    return report.peaks[rank].buffers_by_class[static_cast<size_t>(BufferClass::activation)];
  };
  EXPECT_EQ(activations(gpipe, 0), 4);
  EXPECT_EQ(activations(gpipe, 1), 4);
  EXPECT_EQ(activations(one_f_one_b, 0), 2);
  EXPECT_EQ(activations(one_f_one_b, 1), 1);
  EXPECT_EQ(one_f_one_b.peaks[0].bytes % 1000, 0);
  EXPECT_GT(one_f_one_b.peaks[0].bytes, 0);
}

TEST(Verify, EveryCodeHasAName) {
  std::set<std::string_view> names;
  for (int c = 0; c < kFaultCodeCount; ++c) names.insert(Name(static_cast<FaultCode>(c)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kFaultCodeCount));
}

}  // namespace
}  // namespace penstock::schedule::testing
