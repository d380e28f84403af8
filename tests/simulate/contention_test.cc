// Shared resources: nothing changes while nobody asks for more than there is; sharing by hand; what every schedule
// keeps.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <numeric>

#include "schedule/passes/make_action.h"
#include "simulate/cluster_resources.h"
#include "simulate/contended_engine.h"
#include "simulate/prices.h"
#include "simulate/shapes.h"

namespace penstock::simulate {
namespace {

using schedule::Action;
using schedule::Builder;
using schedule::Kind;
using schedule::PipelineShape;
using schedule::Schedule;
using schedule::Transport;

// One resource; by kind, whether an action uses it.
class OneResource final : public ResourceModel {
 public:
  OneResource(double capacity, bool serial, std::vector<Kind> kinds, double demand = 1)
      : resources_{{.name = "shared", .capacity = capacity, .serial = serial}},
        kinds_(std::move(kinds)),
        demand_(demand) {}
  const std::vector<Resource>& resources() const override { return resources_; }
  void AppendUses(const Schedule&, int, const Action& action, std::vector<ResourceUse>& uses) const override {
    if (std::count(kinds_.begin(), kinds_.end(), action.key.kind) > 0) uses.push_back({0, demand_});
  }

 private:
  std::vector<Resource> resources_;
  std::vector<Kind> kinds_;
  double demand_;
};

const std::vector<Kind> kWork = {Kind::forward, Kind::backward, Kind::backward_input, Kind::backward_weight,
                                 Kind::recompute};

// One rank each: idle for a while (a forward), then work (a backward).
struct Job {
  double idle, work;
};
class JobPrices final : public schedule::ActionCosts<double> {
 public:
  explicit JobPrices(std::vector<Job> jobs) : jobs_(std::move(jobs)) {}
  double Duration(const Schedule&, int rank, const Action& a) const override {
    return a.key.kind == Kind::forward ? jobs_[rank].idle : jobs_[rank].work;
  }
  double Latency(const Schedule&, int, int, const Action&) const override { return 0; }

 private:
  std::vector<Job> jobs_;
};

std::vector<double> EndsOfJobs(const std::vector<Job>& jobs, const OneResource& resource) {
  Schedule schedule = ComputeOnly(Registry<Builder>::Find("gpipe"), {1, 1, 1, {}});
  const auto list = schedule.ranks[0];
  schedule.ranks.assign(jobs.size(), {});
  schedule.route.replica_of.resize(jobs.size());
  std::iota(schedule.route.replica_of.begin(), schedule.route.replica_of.end(), 0);
  for (size_t r = 0; r < jobs.size(); ++r)
    for (Action a : list) {
      a.key.micro_batch = static_cast<int32_t>(r);
      schedule.ranks[r].push_back(a);
    }
  std::vector<double> ends;
  for (const auto& times : TimesWithContention(schedule, JobPrices(jobs), resource)) ends.push_back(times[1].end);
  return ends;
}

using Ends = std::vector<double>;

TEST(Contention, SharedInProportion) {
  // A alone until 1, then both at half speed until B's 2 are done at 5, then A alone: 1 + 2 + 1 = 4.
  EXPECT_EQ(EndsOfJobs({{0, 4}, {1, 2}}, {1, false, {Kind::backward}}), (Ends{6, 5}));
  // Three of 1 on capacity 2: two thirds of the speed.
  EXPECT_EQ(EndsOfJobs({{0, 4}, {0, 4}, {0, 4}}, {2, false, {Kind::backward}}), (Ends{6, 6, 6}));
  EXPECT_EQ(EndsOfJobs({{0, 4}, {0, 4}}, {2, false, {Kind::backward}}), (Ends{4, 4}));
}

TEST(Contention, SerialIsFirstComeFirstServed) {
  EXPECT_EQ(EndsOfJobs({{2, 1}, {0, 3}, {1, 2}}, {1, true, {Kind::backward}}), (Ends{6, 3, 5}));
}

TEST(Contention, TransfersOverOneLinkTakeTwiceAsLong) {
  // Two pipelines of two ranks; both send at 1.
  schedule::LowerSpec spec = SpecOf({2, 1, 2, {}});
  spec.data = 2;
  spec.reduce = spec.check = spec.update = false;
  const Schedule schedule = Lower(Registry<Builder>::Find("gpipe"), spec);
  const PricesByKind<double> prices(1, 2, 2, 0, 0.5);
  const auto free = TimesInOrder<double>(schedule, prices);
  const auto shared = TimesWithContention(schedule, prices, OneResource(10, false, {Kind::send}, 10));
  ASSERT_EQ(schedule.ranks[0][1].key.kind, Kind::send);
  EXPECT_EQ(free[0][1].end, 3);
  for (const int rank : {0, 2}) {
    EXPECT_EQ(shared[rank][1].start, 1);
    EXPECT_EQ(shared[rank][1].end, 5);
  }
  EXPECT_EQ(shared[1][0].end, 5.5);  // the latency is not shared
}

// Two nodes of two devices, a card each that two devices could fill twice; or one machine with a few cores.
std::shared_ptr<const cluster::Cluster> SmallCluster(int cores, double uplink) {
  cluster::Cluster c;
  c.name = "small";
  c.devices.resize(1);
  c.devices[0].cores = cores;
  cluster::Level node{.name = "node", .size = cores > 0 ? 4 : 2, .link = {}};
  node.link.bytes_per_second = 100;
  cluster::Level rack{.name = "rack", .size = 2, .link = {}};
  rack.link.bytes_per_second = 10;
  rack.group_bytes_per_second = uplink;
  c.levels = {node, rack};
  return std::make_shared<const cluster::Cluster>(std::move(c));
}

TEST(Contention, FourRanksOnTwoCores) {
  const Schedule schedule = WholeStep(Registry<Builder>::Find("gpipe"), {1, 1, 3, {}}, 4);
  const PricesByKind<double> prices(1, 2, 0, 0, 0);
  const auto makespan = [&](int cores, int threads) {
    const cost::Placement placement(SmallCluster(cores, 0), 1, 4, 1, cost::MeshOrder::tensor_data_pipeline);
    const ClusterResources resources(schedule, placement, threads);
    return Summarise(schedule, TimesWithContention(schedule, prices, resources)).makespan;
  };
  EXPECT_EQ(makespan(4, 1), 9);
  EXPECT_EQ(makespan(2, 1), 18);
  EXPECT_EQ(makespan(2, 2), 36);
  EXPECT_EQ(makespan(1, 1), 36);
}

TEST(Contention, NetworkCardsOfANode) {
  schedule::LowerSpec spec = SpecOf({2, 1, 1, {}});
  spec.data = 2;
  spec.micro_batches = 2;
  spec.reduce = spec.check = spec.update = false;
  const Schedule schedule = Lower(Registry<Builder>::Find("gpipe"), spec);
  const PricesByKind<double> prices(1, 2, 2, 0, 0.5);
  const auto sent = [&](double uplink, cost::MeshOrder order) {
    const cost::Placement placement(SmallCluster(0, uplink), 1, 2, 2, order);
    return TimesWithContention(schedule, prices, ClusterResources(schedule, placement, 1))[0][1].end;
  };
  // Replicas of a position on one node: both send outwards at once.
  EXPECT_EQ(sent(20, cost::MeshOrder::tensor_data_pipeline), 3);
  EXPECT_EQ(sent(10, cost::MeshOrder::tensor_data_pipeline), 5);
  EXPECT_EQ(sent(5, cost::MeshOrder::tensor_data_pipeline), 9);
  // A pipeline on one node: nothing leaves it.
  EXPECT_EQ(sent(5, cost::MeshOrder::tensor_pipeline_data), 3);
}

bool Equal(const Times<double>& a, const Times<double>& b) {
  for (size_t r = 0; r < a.size(); ++r)
    for (size_t i = 0; i < a[r].size(); ++i)
      if (a[r][i].start != b[r][i].start || a[r][i].end != b[r][i].end) return false;
  return a.size() == b.size();
}

TEST(Contention, WithoutDemandAboveCapacityItIsTheFixedOrder) {
  int64_t compared = 0;
  for (const auto& [name, builder] : Registry<Builder>::All())
    ForEachShape(builder, 4, 6, [&, &builder = builder](const PipelineShape& shape) {
      const Schedule schedule =
          WholeStep(builder, shape, 1 + static_cast<int>(compared % 2), static_cast<int>(compared % 8));
      const ArbitraryPrices prices(static_cast<uint64_t>(compared), true);
      std::vector<Kind> all = kWork;
      all.insert(all.end(), {Kind::send, Kind::collective, Kind::update});
      const OneResource enough(1e6, false, all);
      for (const Transport transport : {Transport::channelled, Transport::eager, Transport::blocking}) {
        EXPECT_TRUE(Equal(TimesWithContention(schedule, prices, enough, transport),
                          TimesInOrder<double>(schedule, prices, transport)))
            << Describe(builder, shape) << " under " << Name(transport);
        ++compared;
      }
    });
  std::cout << "  " << compared << " schedules and transports\n";
  EXPECT_GT(compared, 2000);
}

double UnionLength(std::vector<std::pair<double, double>> spans) {
  std::sort(spans.begin(), spans.end());
  double length = 0, end = 0;
  for (const auto& [from, to] : spans) {
    length += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return length;
}

// A resource of capacity 1, and each action could fill it: whenever anything runs, all of it is used. The time in which
// something runs is therefore the sum of the work, whoever shares with whom; and nothing ends before its own work
// could.
TEST(Contention, WorkIsConserved) {
  int64_t compared = 0;
  for (const bool serial : {false, true})
    for (const auto& [name, builder] : Registry<Builder>::All())
      ForEachShape(builder, 4, 5, [&, &builder = builder](const PipelineShape& shape) {
        const Schedule schedule = WholeStep(builder, shape, 2, static_cast<int>(compared % 4));
        const ArbitraryPrices prices(static_cast<uint64_t>(compared), true);
        const OneResource one(1, serial, kWork);
        const auto times = TimesWithContention(schedule, prices, one);
        EXPECT_TRUE(Equal(times, TimesWithContention(schedule, prices, one))) << "not deterministic";
        double work = 0;
        std::vector<std::pair<double, double>> spans;
        for (int r = 0; r < schedule.num_ranks(); ++r)
          for (size_t i = 0; i < schedule.ranks[r].size(); ++i) {
            const Action& a = schedule.ranks[r][i];
            if (std::count(kWork.begin(), kWork.end(), a.key.kind) == 0) continue;
            const double own = prices.Duration(schedule, r, a);
            work += own;
            spans.emplace_back(times[r][i].start, times[r][i].end);
            EXPECT_GE(times[r][i].end - times[r][i].start, own - 1e-9);
          }
        const double free = ReplayInOrder<double>(schedule, prices).makespan;
        EXPECT_NEAR(UnionLength(spans), work, 1e-9 * work) << Describe(builder, shape);
        EXPECT_GE(Summarise(schedule, times).makespan, free - 1e-9) << Describe(builder, shape);
        ++compared;
      });
  EXPECT_GT(compared, 600);
}

}  // namespace
}  // namespace penstock::simulate
