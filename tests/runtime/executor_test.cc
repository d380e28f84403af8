#include "runtime/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/error.h"
#include "checkpoint/compare.h"
#include "runtime/oracle.h"
#include "runtime/small_job.h"
#include "schedule/operators.h"
#include "schedule/verify.h"

namespace penstock::runtime {
namespace {

checkpoint::NamedTensors PlainParameters(const SmallJob& small, int steps) {
  const auto oracle = MakePlainLoop(small.job);
  for (int step = 0; step < steps; ++step) oracle->Step(small.Bind(step, step));
  checkpoint::NamedTensors tensors;
  for (size_t p = 0; p < small.job.spec.parameters.size(); ++p)
    tensors[small.job.spec.parameters[p].name] = oracle->parameters()[p];
  return tensors;
}

void ExpectPlain(const SmallJob& small, const TrainOutcome& outcome, int steps) {
  const checkpoint::Comparison c = checkpoint::Compare(PlainParameters(small, steps), outcome.parameters);
  EXPECT_EQ(c.verdict, checkpoint::Verdict::equal) << c.ToString();
}

// Every operator a schedule may name has a handler here, and no handler is without an operator.
TEST(OperatorHandlers, SameNamesAsOperators) {
  EXPECT_EQ(Registry<OperatorHandler>::Names(), Registry<schedule::Operator>::Names());
}

TEST(Executor, LayoutsHaveThePlainLoopsBits) {
  for (const SmallLayout& layout :
       std::vector<SmallLayout>{{.builder = "gpipe"},
                                {.builder = "1f1b", .pipeline = 2},
                                {.builder = "zb-h1", .pipeline = 2, .recompute = true},
                                {.builder = "1f1b", .data = 2, .pipeline = 2},
                                {.builder = "1f1b", .data = 3, .micro_batches = 5},
                                {.builder = "interleaved-1f1b", .pipeline = 2, .chunks = 2, .tied = false},
                                {.builder = "zb-v", .data = 2, .pipeline = 2, .chunks = 2}}) {
    const auto small = MakeSmallJob(layout);
    ASSERT_TRUE(schedule::Verify(small->schedule).ok()) << schedule::Verify(small->schedule).ToString();
    ExpectPlain(*small, RunTrainLoop(small->Loop(2), true), 2);
    small->job.serial = true;
    ExpectPlain(*small, RunTrainLoop(small->Loop(2), true), 2);
  }
}

// More replicas than micro-batches: the last one holds its parameters and takes part in the reductions.
TEST(Executor, ReplicaWithoutMicroBatches) {
  const auto small = MakeSmallJob({.data = 3, .micro_batches = 2});
  ExpectPlain(*small, RunTrainLoop(small->Loop(2), true), 2);
}

TEST(Executor, TimelineCoversEveryAction) {
  const auto small = MakeSmallJob({.pipeline = 2});
  TrainLoop loop = small->Loop(3);
  loop.timeline_first = 1;
  loop.timeline_count = 1;
  const TrainOutcome outcome = RunTrainLoop(loop);
  EXPECT_EQ(static_cast<int64_t>(outcome.timeline.events.size()), small->schedule.num_actions());
  for (const schedule::Event& event : outcome.timeline.events) {
    EXPECT_EQ(event.step, 1);
    EXPECT_GE(event.end, event.start);
    EXPECT_LE(event.waited, event.end - event.start + 1e-9);
    EXPECT_EQ(event.action, small->schedule.at({event.rank, event.index}));
  }
  // F0 of rank 1 works only after F0 of rank 0 has begun to.
  const auto find = [&](int rank, int micro_batch) {
    for (const schedule::Event& event : outcome.timeline.events)
      if (event.rank == rank && event.action.key.kind == schedule::Kind::forward &&
          event.action.key.micro_batch == micro_batch)
        return event;
    throw InternalError("no such event");
  };
  EXPECT_GE(find(1, 0).start + find(1, 0).waited, find(0, 0).start + find(0, 0).waited);
}

// Makes the updates of some parameters take long.
class SlowUpdates final : public Observer {
 public:
  explicit SlowUpdates(std::vector<int> parameters) : parameters_(std::move(parameters)) {}
  void Leaf(int64_t, int, int, int, const at::Tensor&) override {}
  void Gradient(int64_t, int parameter, const at::Tensor&) override {
    if (std::find(parameters_.begin(), parameters_.end(), parameter) != parameters_.end())
      std::this_thread::sleep_for(std::chrono::milliseconds(kMilliseconds));
  }
  void Updated(int64_t, int, const optim::UpdateInput&, const optim::OptimizerState&) override {}
  static constexpr int kMilliseconds = 50;

 private:
  const std::vector<int> parameters_;
};

// An explicit edge between two ranks: update of unit 1 on rank 1 waits for the update of unit 0 on rank 0.
TEST(Executor, EdgesBetweenRanks) {
  const auto small = MakeSmallJob({.pipeline = 2, .tied = false});
  schedule::Schedule& s = small->schedule;
  const auto find = [&](int rank) {
    for (size_t i = 0; i < s.ranks[rank].size(); ++i)
      if (s.ranks[rank][i].key.kind == schedule::Kind::update) return static_cast<int32_t>(i);
    throw InternalError("no update");
  };
  s.edges.push_back({0, find(0)});
  s.ranks[1][find(1)].extra_edges = {0, 1};
  ASSERT_TRUE(schedule::Verify(s).ok()) << schedule::Verify(s).ToString();
  SlowUpdates slow({small->job.units[0].parameters.front()});
  small->job.observer = &slow;
  TrainLoop loop = small->Loop(2);
  loop.timeline_count = 2;
  const TrainOutcome outcome = RunTrainLoop(loop, true);
  small->job.observer = nullptr;
  ExpectPlain(*small, outcome, 2);
  int seen = 0;
  for (int step = 0; step < 2; ++step) {
    double updating = 0, started = 0;
    for (const schedule::Event& event : outcome.timeline.events) {
      if (event.step != step) continue;
      if (event.rank == 0 && event.index == find(0)) updating = event.start + event.waited;
      if (event.rank == 1 && event.index == find(1)) started = event.start + event.waited;
    }
    EXPECT_GE(started, updating + 1e-3 * SlowUpdates::kMilliseconds);
    seen += updating > 0;
  }
  EXPECT_EQ(seen, 2);
}

// A rank that fails ends the run on all ranks with its own words.
TEST(Executor, FailureOfOneRankEndsAll) {
  const auto small = MakeSmallJob({.data = 2, .pipeline = 2});
  TrainLoop loop = small->Loop(5);
  const auto bind = loop.bind;
  loop.bind = [&](int64_t step, int64_t applied) {
    StepBinding binding = bind(step, applied);
    const auto materialize = binding.materialize;
    binding.materialize = [materialize, step](int j) {
      if (step == 2 && j == 3) throw WorldError("the disk with micro-batch 3 is gone");
      return materialize(j);
    };
    return binding;
  };
  try {
    RunTrainLoop(loop);
    FAIL() << "the failure was swallowed";
  } catch (const WorldError& error) {
    EXPECT_NE(std::string(error.what()).find("micro-batch 3 is gone"), std::string::npos) << error.what();
  }
}

// A schedule whose message orders differ on the two sides is found at run time too, in the schedule's words.
TEST(Executor, SwappedMessagesAreNamed) {
  const auto small = MakeSmallJob({.builder = "gpipe", .pipeline = 2});
  std::vector<size_t> sends;
  auto& list = small->schedule.ranks[0];
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].key.kind == schedule::Kind::send) sends.push_back(i);
  ASSERT_GE(sends.size(), 2u);
  std::rotate(list.begin() + sends[0], list.begin() + sends[0] + 1,
              list.begin() + sends[1] + 1);  // the first after the second
  EXPECT_FALSE(schedule::Verify(small->schedule).ok());
  try {
    RunTrainLoop(small->Loop(1));
    FAIL() << "swapped messages were accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("activation"), std::string::npos) << error.what();
  }
}

// bf16 runs: the loss follows the fp32 run closely, and any layout has the same bits.
TEST(Executor, Bf16) {
  const auto one = MakeSmallJob({});
  const TrainOutcome wide = RunTrainLoop(one->Loop(4), true);
  one->job.precision = model::Precision::bf16;
  const TrainOutcome narrow = RunTrainLoop(one->Loop(4), true);
  EXPECT_NEAR(wide.last.result.verdict.loss, narrow.last.result.verdict.loss, 0.05);
  EXPECT_NE(wide.last.result.verdict.loss, narrow.last.result.verdict.loss);
  const auto two = MakeSmallJob({.builder = "zb-h1", .pipeline = 2});
  two->job.precision = model::Precision::bf16;
  EXPECT_EQ(checkpoint::Compare(narrow.parameters, RunTrainLoop(two->Loop(4), true).parameters).verdict,
            checkpoint::Verdict::equal);
}

// fp16: the scale does not show in the result unless something is rounded away, and any layout has the same bits.
TEST(Executor, Fp16) {
  const auto run = [](const SmallLayout& layout, double scale, double min_scale, int steps) {
    const auto small = MakeSmallJob(layout);
    small->job.precision = model::Precision::fp16;
    small->job.loss_scale = {.enabled = true, .initial = scale, .interval = 2, .minimum = min_scale};
    std::vector<double> scales;
    TrainLoop loop = small->Loop(steps);
    loop.after_step = [&](const StepReport& report) {
      scales.push_back(report.scale);
      return AfterStep::go_on;
    };
    return std::pair(RunTrainLoop(loop, true), scales);
  };
  const auto wide = MakeSmallJob({});
  const TrainOutcome exact = RunTrainLoop(wide->Loop(4), true);
  const auto [one, scales] = run({}, 1024, 1, 4);
  EXPECT_EQ(scales, (std::vector<double>{1024, 1024, 2048, 2048}));
  EXPECT_NEAR(exact.last.result.verdict.loss, one.last.result.verdict.loss, 0.01);
  EXPECT_NE(exact.last.result.verdict.loss, one.last.result.verdict.loss);
  const auto [two, same_scales] = run({.builder = "zb-h1", .data = 2, .pipeline = 2, .recompute = true}, 1024, 1, 4);
  EXPECT_EQ(same_scales, scales);
  EXPECT_EQ(checkpoint::Compare(one.parameters, two.parameters).verdict, checkpoint::Verdict::equal);
  // A scale far too small loses all gradients, as operands in fp16.
  EXPECT_EQ(run({}, 0x1p-30, 0x1p-30, 1).first.last.result.verdict.norm, 0);
  EXPECT_GT(run({}, 1024, 1, 1).first.last.result.verdict.norm, 0.1);
}

}  // namespace
}  // namespace penstock::runtime
