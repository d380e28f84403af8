// The three transports: small cases by hand, and what must hold between them for every schedule.
#include <gtest/gtest.h>

#include <iostream>

#include "schedule/passes/make_action.h"
#include "schedule/verify.h"
#include "simulate/prices.h"
#include "simulate/shapes.h"

namespace penstock::simulate {
namespace {

using schedule::Builder;
using schedule::Kind;
using schedule::LowerSpec;
using schedule::PipelineShape;
using schedule::Schedule;
using schedule::Transport;
using Ends = std::vector<std::vector<double>>;

// Compute and messages alone, so that a list can be followed by hand.
Schedule WithMessages(const std::string& builder, const PipelineShape& shape) {
  LowerSpec spec = SpecOf(shape);
  spec.reduce = spec.check = spec.update = false;
  return Lower(Registry<Builder>::Find(builder), spec);
}

Ends EndsOf(const Schedule& schedule, const schedule::ActionCosts<double>& prices, Transport transport) {
  Ends ends;
  for (const auto& list : TimesInOrder<double>(schedule, prices, transport)) {
    ends.emplace_back();
    for (const auto& t : list) ends.back().push_back(t.end);
  }
  return ends;
}

std::string ListOf(const Schedule& schedule, int rank) {
  std::string text;
  for (const auto& a : schedule.ranks[rank])
    text += fmt::format("{}{}{} ", Name(a.key.kind)[0], a.key.kind == Kind::recv || a.key.kind == Kind::send ? "" : "_",
                        a.key.micro_batch);
  return text;
}

// Forward 1, backward 2, a send keeps its channel for 1, latency 1/2.
class ByHand : public testing::Test {
 protected:
  ByHand() : schedule_(WithMessages("gpipe", {2, 1, 2, {}})) {
    EXPECT_EQ(ListOf(schedule_, 0), "f_0 s0 f_1 s1 r0 b_0 r1 b_1 ");
    EXPECT_EQ(ListOf(schedule_, 1), "r0 f_0 r1 f_1 b_0 s0 b_1 s1 ");
  }
  const Schedule schedule_;
  const PricesByKind<double> prices_{1, 2, 1, 0, 0.5};
};

// Compute goes on while a message is under way; messages of a channel follow each other.
TEST_F(ByHand, Channelled) {
  EXPECT_EQ(EndsOf(schedule_, prices_, Transport::channelled),
            (Ends{{1, 2, 2, 3, 8, 10, 10, 12}, {2.5, 3.5, 3.5, 4.5, 6.5, 7.5, 8.5, 9.5}}));
}

// One thing after the other: a send keeps the rank for its duration, a receive until the message is there.
TEST_F(ByHand, Eager) {
  EXPECT_EQ(EndsOf(schedule_, prices_, Transport::eager),
            (Ends{{1, 2, 3, 4, 9, 11, 12, 14}, {2.5, 3.5, 4.5, 5.5, 7.5, 8.5, 10.5, 11.5}}));
}

// A send and its receive begin when both ranks have come to them and end together, latency included; all messages of a
// rank are in one queue.
TEST_F(ByHand, Blocking) {
  EXPECT_EQ(EndsOf(schedule_, prices_, Transport::blocking),
            (Ends{{1, 2.5, 2, 4, 8.5, 10.5, 10.5, 12.5}, {2.5, 3.5, 4, 5, 7, 8.5, 9, 10.5}}));
}

// Posted orders of two ranks with two chunks each that hang where a send waits for its receive: both send first.
TEST(Blocking, PublishedOrderDeadlocksWithItsWaitGraph) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("interleaved-1f1b"), {2, 2, 2, {}});
  for (auto& list : schedule.ranks) list.clear();
  const auto message = [&](int rank, Kind kind, int stage, int m) {
    auto a = schedule::MakeAction(kind, {0, static_cast<uint16_t>(stage)}, m,
                                  schedule::FindOp(schedule::ops::kActivation), stage);
    a.peer_or_group = 1 - rank;
    schedule.ranks[rank].push_back(a);
  };
  message(0, Kind::send, 0, 1);
  message(0, Kind::recv, 1, 0);
  schedule.ranks[0].push_back(schedule::MakeCompute(Kind::forward, 2, 0));
  message(1, Kind::send, 1, 0);
  message(1, Kind::recv, 0, 1);
  schedule.ranks[1].push_back(schedule::MakeCompute(Kind::forward, 1, 1));
  const PricesByKind<double> prices(1, 2, 1, 0, 0.5);
  for (const Transport transport : {Transport::eager, Transport::channelled}) {
    const auto times = TimesInOrder<double>(schedule, prices, transport);
    EXPECT_EQ(times[0][2].end, 2.5) << Name(transport);
  }
  try {
    TimesInOrder<double>(schedule, prices, Transport::blocking);
    ADD_FAILURE() << "finished";
  } catch (const UserError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("does not finish: 6 of 6 actions never end"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 0: send:activation 0.1 -> 1 waits for recv:activation 0.1 <- 0 on rank 1"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("rank 1: send:activation 1.0 part 1 -> 0 waits for recv:activation 1.0 part 1 <- 1 on rank 0"),
              std::string::npos)
        << said;
  }
}

bool Finishes(const Schedule& schedule, const schedule::ActionCosts<double>& prices, Transport transport,
              double& makespan) {
  try {
    makespan = ReplayInOrder<double>(schedule, prices, transport).makespan;
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// For every builder: eager and blocking transport never end sooner than channelled; what finishes is what the verifier
// says.
TEST(Transports, OrderAndVerdictsForEveryBuilder) {
  int64_t shapes = 0, blocked = 0, slower = 0;
  for (const auto& [name, builder] : Registry<Builder>::All())
    ForEachShape(builder, 5, 8, [&, &builder = builder](const PipelineShape& shape) {
      const int data = 1 + static_cast<int>(shapes % 2);
      const Schedule schedule = WholeStep(builder, shape, data, static_cast<int>(shapes % 8));
      const ArbitraryPrices prices(static_cast<uint64_t>(shapes), true);
      const auto verdicts = Verify(schedule).transports;
      double channelled = 0;
      ASSERT_TRUE(Finishes(schedule, prices, Transport::channelled, channelled)) << Describe(builder, shape);
      for (const Transport transport : {Transport::channelled, Transport::eager, Transport::blocking}) {
        double makespan = 0;
        const bool finishes = Finishes(schedule, prices, transport, makespan);
        EXPECT_EQ(finishes, verdicts[static_cast<size_t>(transport)].completes)
            << Describe(builder, shape) << " x " << data << " under " << Name(transport);
        blocked += !finishes;
        if (!finishes) continue;
        EXPECT_GE(makespan, channelled) << Describe(builder, shape) << " under " << Name(transport);
        slower += makespan > channelled;
      }
      ++shapes;
    });
  std::cout << fmt::format("  {} schedules; {} slower than channelled, {} deadlocks\n", shapes, slower, blocked);
  EXPECT_GT(shapes, 1500);
  EXPECT_GT(slower, shapes / 2);
}

// The same agreement where some do hang: two actions of one rank exchanged at random.
TEST(Transports, VerdictsOfDisorderedLists) {
  int64_t schedules = 0, hangs = 0;
  const PricesByKind<double> prices(1, 2, 1, 1, 0.5);
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    const int v = builder.default_chunks;
    const Schedule whole = WholeStep(builder, {3, v, 6, {}}, 1);
    for (int rank = 0; rank < 3; ++rank)
      for (size_t i = 0; i + 1 < whole.ranks[rank].size(); ++i) {
        Schedule changed = whole;
        std::swap(changed.ranks[rank][i], changed.ranks[rank][i + 1]);
        const auto report = Verify(changed);
        // What does not match is refused by both, in other words; here only hanging counts.
        bool other = false;
        for (const auto& fault : report.faults) other |= fault.code != schedule::FaultCode::deadlock;
        if (other) continue;
        for (const Transport transport : {Transport::channelled, Transport::eager, Transport::blocking}) {
          double makespan = 0;
          const bool finishes = Finishes(changed, prices, transport, makespan);
          EXPECT_EQ(finishes, report.transports[static_cast<size_t>(transport)].completes)
              << name << " rank " << rank << " at " << ToString(whole.ranks[rank][i]) << " under " << Name(transport)
              << "\n"
              << report.ToString();
          ++schedules;
          hangs += !finishes;
        }
      }
  }
  std::cout << fmt::format("  {} schedules and transports, {} hang\n", schedules, hangs);
  EXPECT_GT(schedules, 500);
  EXPECT_GT(hangs, 0);
}

}  // namespace
}  // namespace penstock::simulate
