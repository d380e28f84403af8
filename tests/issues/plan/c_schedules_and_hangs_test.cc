// Public reports of other systems that the schedule half answers alone (cases.md).
#include "schedule/lowered.h"
#include "schedule/passes/make_action.h"

namespace penstock::schedule::testing {
namespace {

// Lists of a part of a step on two ranks with two chunks each (loop placement), as they were posted.
class PostedOrder {
 public:
  explicit PostedOrder(int micro_batches) {
    s_.graph = StageGraph::Chain(4);
    s_.stage_options.resize(4);
    s_.route = {.pipeline_size = 2,
                .placements = {{0, 1, 0, 1}},
                .replica_of = ContiguousReplicas(micro_batches, 1),
                .placement_of = {},
                .overrides = {}};
    s_.ranks.resize(2);
  }
  PostedOrder& F(int rank, int stage, int m) { return Add(rank, MakeCompute(Kind::forward, stage, m)); }
  PostedOrder& B(int rank, int stage, int m) { return Add(rank, MakeCompute(Kind::backward, stage, m)); }
  // Named as in the report, after the stage on this side: SEND_F of stage 2 goes to stage 3, RECV_F of stage 2 comes
  // from stage 1.
  PostedOrder& SendF(int rank, int stage, int m) {
    return Message(rank, Kind::send, ops::kActivation, stage, stage, m);
  }
  PostedOrder& RecvF(int rank, int stage, int m) {
    return Message(rank, Kind::recv, ops::kActivation, stage - 1, stage - 1, m);
  }
  PostedOrder& SendB(int rank, int stage, int m) {
    return Message(rank, Kind::send, ops::kGradient, stage, stage - 1, m);
  }
  PostedOrder& RecvB(int rank, int stage, int m) {
    return Message(rank, Kind::recv, ops::kGradient, stage + 1, stage, m);
  }

  VerifyReport Verified() const {
    VerifyOptions options;
    options.expect_coverage = false;
    return Verify(s_, options);
  }

 private:
  PostedOrder& Add(int rank, Action action) {
    s_.ranks[rank].push_back(action);
    return *this;
  }
  PostedOrder& Message(int rank, Kind kind, std::string_view op, int producer, int edge, int m) {
    Action action = MakeAction(kind, {0, static_cast<uint16_t>(producer)}, m, FindOp(op), edge);
    action.peer_or_group = 1 - rank;
    return Add(rank, action);
  }

  Schedule s_;
};

const TransportVerdict& Of(const VerifyReport& report, Transport transport) {
  return report.transports[static_cast<size_t>(transport)];
}

TEST(IssueC1, FirstPostedOrder) {
  PostedOrder order(2);
  order.SendF(0, 0, 1).RecvF(0, 2, 0).F(0, 2, 0);
  order.SendF(1, 1, 0).RecvF(1, 1, 1).F(1, 1, 1);
  const VerifyReport report = order.Verified();
  EXPECT_TRUE(Of(report, Transport::eager).completes);
  EXPECT_TRUE(Of(report, Transport::channelled).completes);
  EXPECT_FALSE(Of(report, Transport::blocking).completes);
  EXPECT_EQ(Of(report, Transport::blocking).cycle,
            "rank 0 waits at 'send:activation 0.1 -> 1' for rank 1, which waits at 'send:activation 1.0 part 1 -> 0' "
            "for rank 0");
  ASSERT_EQ(report.faults.size(), 1u) << report.ToString();
  EXPECT_EQ(report.faults[0].code, FaultCode::deadlock);
}

TEST(IssueC1, SecondPostedOrder) {
  PostedOrder order(3);
  order.SendF(0, 2, 1).F(0, 0, 2).SendF(0, 0, 2).RecvB(0, 2, 0).B(0, 2, 0);
  order.RecvF(1, 3, 1).SendB(1, 3, 0).F(1, 3, 1).B(1, 3, 1).RecvF(1, 1, 2).SendB(1, 3, 1).F(1, 1, 2);
  const VerifyReport report = order.Verified();
  EXPECT_TRUE(Of(report, Transport::eager).completes);
  EXPECT_FALSE(Of(report, Transport::blocking).completes);
  EXPECT_EQ(Of(report, Transport::blocking).cycle,
            "rank 0 waits at 'send:activation 0.2 -> 1' for rank 1, which waits at 'send:gradient 3.0 part 2 -> 0' for "
            "rank 0");
  // On channels of their own nothing waits in a ring; what is left is the message that nobody takes.
  EXPECT_EQ(Of(report, Transport::channelled).cycle,
            "rank 1 waits at 'send:gradient 3.1 part 2 -> 0' for rank 0, which never receives it");
  EXPECT_FAULT(report, FaultCode::unmatched_message, "'send:gradient 3.1 part 2 -> 0' on rank 1 has no receiver");
}

TEST(IssueC3, InterleavedZeroBubbleOnFourRanksCompletes) {
  for (const char* builder : {"zb-v", "interleaved-1f1b"}) {
    for (const LowerSpec::Split split : {LowerSpec::Split::as_ordered, LowerSpec::Split::always}) {
      LowerSpec spec = Mesh(1, 4, 2, 8);
      spec.split_backward = split;
      const VerifyReport report = Verify(LowerNamed(builder, spec));
      EXPECT_TRUE(report.ok()) << builder << '\n' << report.ToString();
      for (const TransportVerdict& verdict : report.transports)
        EXPECT_TRUE(verdict.completes) << builder << verdict.cycle;
    }
  }
}

TEST(IssueC6, CollectivesInDifferentOrders) {
  // Two replicas that hold two stages: rank 1 reduces unit 0 before unit 1, rank 0 the reverse.
  Schedule schedule = LowerNamed("interleaved-1f1b", Mesh(2, 1, 2, 4));
  ASSERT_TRUE(Verify(schedule).ok());
  Swap(schedule, 1, "collective:reduce 0 group 0", "collective:reduce 1 group 0");
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::collective_order,
               "ranks 0 and 1 issue the collectives of group 0 in different orders from number 0 on: "
               "rank 0: 'collective:reduce 1', 'collective:reduce 0', 'collective:gather_statistics 0'; "
               "rank 1: 'collective:reduce 0', 'collective:reduce 1', 'collective:gather_statistics 0'");
}

TEST(IssueA1, TiedEmbeddingIsReducedOverReplicasBeforeItsUsesAreSummed) {
  LowerSpec spec = Mesh(2, 2, 1, 4);
  spec.shared_parameters = {{0, 1}};
  Schedule schedule = LowerNamed("1f1b", spec);
  ASSERT_TRUE(Verify(schedule).ok()) << Verify(schedule).ToString();
  // Ranks 0 and 2 run stage 0, ranks 1 and 3 stage 1; the faulty order sums over all four first.
  for (int r = 0; r < 4; ++r) {
    const auto& list = schedule.ranks[r];
    std::string reduce, sum;
    for (const Action& a : list) {
      if (OpName(a.key.op) == ops::kReduce && a.key.unit.stage == 2) reduce = ToString(a);
      if (OpName(a.key.op) == ops::kSumUses) sum = ToString(a);
    }
    MoveBefore(schedule, r, sum, reduce);
  }
  const VerifyReport report = Verify(schedule);
  EXPECT_FAULT(report, FaultCode::reduced_too_early, "use 0 of unit 2 (stage 0) is not reduced over its 2 holders yet");
  EXPECT_FAULT(report, FaultCode::reduced_too_early, "use 1 of unit 2 (stage 1) is not reduced over its 2 holders yet");
}

}  // namespace
}  // namespace penstock::schedule::testing
