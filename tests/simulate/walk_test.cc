// The walk in program order against the graph of all dependencies: equal times, bit by bit.
#include <gtest/gtest.h>

#include <iostream>

#include "schedule/passes/make_action.h"
#include "simulate/prices.h"
#include "simulate/shapes.h"
#include "simulate/walk/program_walk.h"

namespace penstock::simulate {
namespace {

using schedule::Builder;
using schedule::Kind;
using schedule::PipelineShape;
using schedule::Schedule;
using schedule::Transport;

constexpr Transport kTransports[] = {Transport::eager, Transport::channelled, Transport::blocking};

bool Equal(const Times<double>& a, const Times<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r].size() != b[r].size()) return false;
    for (size_t i = 0; i < a[r].size(); ++i)
      if (a[r][i].start != b[r][i].start || a[r][i].end != b[r][i].end) return false;
  }
  return true;
}

TEST(ProgramWalk, GivesTheTimesOfTheGraph) {
  int64_t compared = 0, walked = 0;
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    ForEachShape(builder, 4, 7, [&, &builder = builder](const PipelineShape& shape) {
      const int data = 1 + static_cast<int>(compared % 3), variant = static_cast<int>(compared / 3 % 8);
      const Schedule schedule = WholeStep(builder, shape, data, variant);
      for (const Transport transport : kTransports) {
        const ArbitraryPrices prices(static_cast<uint64_t>(compared), compared % 2 == 0);
        const auto reference = TimesByGraph<double>(schedule, prices, transport);
        EXPECT_TRUE(Equal(TimesInOrder<double>(schedule, prices, transport), reference))
            << Describe(builder, shape) << " x " << data << ", variant " << variant << ", " << Name(transport);
        Times<double> times;
        walked += WalkInProgramOrder(schedule, prices, transport, times);
        ++compared;
      }
    });
  }
  std::cout << "  " << compared << " schedules and transports, " << walked << " without the graph\n";
  EXPECT_GT(compared, 3000);
  EXPECT_GT(walked, compared / 2);  // the others have one position: no messages
}

// Prices that do not depend on the micro-batch are asked for once per class; it is the same price.
TEST(ProgramWalk, AsksOncePerClass) {
  class Counting final : public schedule::ActionCosts<double> {
   public:
    explicit Counting(bool by_micro_batch) : by_micro_batch_(by_micro_batch) {}
    double Duration(const Schedule&, int, const schedule::Action&) const override { return ++asked, 1.0; }
    double Latency(const Schedule&, int, int, const schedule::Action&) const override { return 0.5; }
    bool depends_on_micro_batch() const override { return by_micro_batch_; }
    mutable int asked = 0;

   private:
    bool by_micro_batch_;
  };
  const Schedule schedule = WholeStep(Registry<Builder>::Find("1f1b"), {4, 1, 64, {}}, 1);
  const Counting once(false), each(true);
  EXPECT_TRUE(Equal(TimesInOrder<double>(schedule, once), TimesInOrder<double>(schedule, each)));
  EXPECT_EQ(each.asked, schedule.num_actions());
  EXPECT_LT(once.asked, 60);
}

// Two ranks that first receive and then send, on channels of their own: it works in time, not in program order.
TEST(ProgramWalk, LeavesOvertakingToTheGraph) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("gpipe"), {2, 1, 2, {}});
  for (auto& list : schedule.ranks) list.clear();
  const auto add = [&](int rank, Kind kind, int m) {
    auto a = schedule::MakeAction(kind, {0, 0}, m, schedule::FindOp(schedule::ops::kActivation));
    a.peer_or_group = 1 - rank;
    schedule.ranks[rank].push_back(a);
  };
  add(0, Kind::recv, 1);
  add(0, Kind::send, 0);
  add(1, Kind::recv, 0);
  add(1, Kind::send, 1);
  const PricesByKind<double> prices(1, 2, 2, 0, 0.5);
  Times<double> times;
  EXPECT_FALSE(WalkInProgramOrder(schedule, prices, Transport::channelled, times));
  times = TimesInOrder<double>(schedule, prices);
  EXPECT_EQ(times[0][0].end, 2.5);
  EXPECT_EQ(times[1][0].end, 2.5);
  EXPECT_THROW(TimesInOrder<double>(schedule, prices, Transport::eager), UserError);
  EXPECT_THROW(TimesInOrder<double>(schedule, prices, Transport::blocking), UserError);
}

}  // namespace
}  // namespace penstock::simulate
