// No single action of a schedule can be lost or doubled without the verifier saying so, and no damage crashes it.
#include <random>

#include "schedule/lowered.h"

namespace penstock::schedule::testing {
namespace {

std::vector<Schedule> Samples() {
  LowerSpec tied = Mesh(2, 2, 1, 3);
  tied.shared_parameters = {{0, 1}};
  tied.recompute = {true, false};
  LowerSpec one_rank = Mesh(1, 1, 2, 2);
  one_rank.shared_parameters = {{0, 0, 1}};
  std::vector<Schedule> samples;
  samples.push_back(LowerNamed("1f1b", tied));
  samples.push_back(LowerNamed("zb-h1", Mesh(1, 3, 1, 4)));
  samples.push_back(LowerNamed("zb-v", Mesh(2, 2, 2, 4)));
  samples.push_back(LowerNamed("breadth-first", one_rank));
  return samples;
}

TEST(Mutation, EveryLostActionIsNoticed) {
  for (const Schedule& good : Samples()) {
    ASSERT_TRUE(Verify(good).ok()) << Verify(good).ToString();
    for (int r = 0; r < good.num_ranks(); ++r) {
      for (size_t i = 0; i < good.ranks[r].size(); ++i) {
        Schedule schedule = good;
        schedule.ranks[r].erase(schedule.ranks[r].begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_FALSE(Verify(schedule).ok())
            << good.name << " without '" << ToString(good.ranks[r][i]) << "' of rank " << r;
      }
    }
  }
}

TEST(Mutation, EveryDoubledActionIsNoticed) {
  for (const Schedule& good : Samples()) {
    for (int r = 0; r < good.num_ranks(); ++r) {
      for (size_t i = 0; i < good.ranks[r].size(); ++i) {
        Schedule schedule = good;
        schedule.ranks[r].insert(schedule.ranks[r].begin() + static_cast<std::ptrdiff_t>(i), good.ranks[r][i]);
        EXPECT_FALSE(Verify(schedule).ok())
            << good.name << " with two '" << ToString(good.ranks[r][i]) << "' on rank " << r;
      }
    }
  }
}

TEST(Mutation, ActionsOnAnotherRankAreNoticed) {
  const Schedule good = LowerNamed("1f1b", Mesh(2, 2, 1, 3));
  for (int r = 0; r < good.num_ranks(); ++r) {
    for (size_t i = 0; i < good.ranks[r].size(); ++i) {
      Schedule schedule = good;
      auto& to = schedule.ranks[(r + 1) % good.num_ranks()];
      to.insert(to.begin() + static_cast<std::ptrdiff_t>(std::min(i, to.size())), good.ranks[r][i]);
      schedule.ranks[r].erase(schedule.ranks[r].begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(Verify(schedule).ok()) << "'" << ToString(good.ranks[r][i]) << "' of rank " << r;
    }
  }
}

TEST(Mutation, CollectivesRunOverTheirHolders) {
  Schedule schedule = LowerNamed("1f1b", Mesh(2, 2, 1, 2));
  schedule.groups.push_back({0});
  const int32_t alone = static_cast<int32_t>(schedule.groups.size()) - 1;
  schedule.ranks[0][IndexOf(schedule, 0, "collective:reduce 0 group 0")].peer_or_group = alone;
  EXPECT_FAULT(Verify(schedule), FaultCode::route, "'collective:reduce 0 group 3' on rank 0");
  EXPECT_FAULT(Verify(schedule), FaultCode::route, "the use is held by group 0");
  schedule = LowerNamed("1f1b", Mesh(2, 2, 1, 2));
  for (const int r : {0, 2})
    schedule.ranks[r][IndexOf(schedule, r, "collective:gather_statistics 0 group 2")].peer_or_group = 0;
  EXPECT_FAULT(Verify(schedule), FaultCode::route, "the statistics of 2 of 4 ranks are gathered");
}

TEST(Mutation, DamageNeverCrashes) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  const std::vector<Schedule> samples = Samples();
  int faulty = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    Schedule schedule = samples[below(samples.size())];
    for (int n = 1 + below(3); n > 0; --n) {
      auto& list = schedule.ranks[below(schedule.ranks.size())];
      if (list.empty()) continue;
      Action& action = list[below(list.size())];
      const int small = below(9) - 2;
      switch (below(14)) {
        case 0:
          action.key.kind = static_cast<Kind>(below(13));
          break;
        case 1:
          action.key.op = static_cast<OpId>(below(10));
          break;
        case 2:
          action.key.unit.stage = static_cast<uint16_t>(small);
          break;
        case 3:
          action.key.micro_batch = small;
          break;
        case 4:
          action.key.part = static_cast<int16_t>(small);
          break;
        case 5:
          action.peer_or_group = small;
          break;
        case 6:
          action.guard = static_cast<int16_t>(small);
          break;
        case 7:
          action.stream = static_cast<Stream>(below(7));
          break;
        case 8:
          action.extra_edges = {static_cast<uint32_t>(below(2)), static_cast<uint16_t>(below(3))};
          break;
        case 9:
          schedule.edges.push_back({small, below(20)});
          break;
        case 10:
          std::swap(action, list[below(list.size())]);
          break;
        case 11:
          schedule.groups[below(schedule.groups.size())].push_back(small);
          break;
        case 12:
          schedule.route.placements[0][below(schedule.route.placements[0].size())] = small;
          break;
        case 13:
          schedule.holders.units[below(schedule.holders.units.size())].uses.clear();
          break;
      }
    }
    const VerifyReport report = Verify(schedule);
    if (!report.ok()) ++faulty;
    EXPECT_FALSE(report.ToString().empty());
  }
  EXPECT_GT(faulty, 3000);
}

}  // namespace
}  // namespace penstock::schedule::testing
