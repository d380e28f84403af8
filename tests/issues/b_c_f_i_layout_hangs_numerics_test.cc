// Cases B1, B5 (layout of layers), C8 (warm-up), F2 (non-finite), I6 (length of the output).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "checkpoint/temporary_directory.h"
#include "issues/tiny.h"
#include "model/partition.h"
#include "runtime/train_loop.h"
#include "schedule/costs.h"
#include "session/run/train_command.h"
#include "simulate/list_engine.h"

namespace penstock {
namespace {

// Blocks per stage of a plan.
std::vector<int> Blocks(const session::Plan& plan) {
  std::vector<int> blocks(plan.partition.stages());
  for (int s = 0; s < plan.partition.stages(); ++s)
    for (int l = plan.partition.first[s]; l < plan.partition.first[s + 1]; ++l)
      blocks[s] += plan.spec.layers[l].repeated;
  return blocks;
}

// https://github.com/NVIDIA/Megatron-LM/issues/1304, https://github.com/NVIDIA/Megatron-LM/pull/823: 30 layers over 4
// stages trained 28.
TEST(IssueB1, NoLayerIsDropped) {
  const auto thirty =
      session::MakePlan(*tiny::Settings({"model.layers=30", "parallel.pipeline=4", "parallel.stages='even'"}), true);
  EXPECT_EQ(Blocks(thirty), (std::vector<int>{8, 8, 7, 7}));
  EXPECT_EQ(static_cast<int>(thirty.spec.layers.size()), 32);  // with embedding and head
  EXPECT_NE(thirty.explanation.find("stage 3"), std::string::npos);
  EXPECT_EQ(thirty.explanation.find("stage 3"), thirty.explanation.rfind("stage 3")) << "printed once";
  const auto seven = session::MakePlan(*tiny::Settings({"model.layers=7", "parallel.pipeline=4"}), true);
  const std::vector<int> blocks = Blocks(seven);
  EXPECT_EQ(std::accumulate(blocks.begin(), blocks.end(), 0), 7);
  // Balanced by cost, head and embedding counted: no stage is without a block, none has more than two blocks too many.
  EXPECT_GE(*std::min_element(blocks.begin(), blocks.end()), 1);
  EXPECT_LE(*std::max_element(blocks.begin(), blocks.end()), 3);
  EXPECT_THROW(
      session::MakePlan(*tiny::Settings({"model.layers=7", "parallel.pipeline=4", "parallel.stages='2,2,1,1'"}), true),
      UserError);
  // And it trains all of them: the uneven pipeline has the bits of the plain loop over all layers.
  const auto samples = tiny::EqualSamples();
  tiny::ExpectEqualBits(tiny::Reference({"model.layers=7"}, samples),
                        tiny::RunLayout({"model.layers=7", "parallel.pipeline=4"}, samples));
}

// NVIDIA/Megatron-LM PR 5318: embedding and loss unbalance the ends. A vocabulary of 20,000 at hidden 32 makes the head
// the most expensive layer.
TEST(IssueB5, BlocksMoveAwayFromAnExpensiveHead) {
  const auto plan = session::MakePlan(
      *tiny::Settings({"model.vocabulary=20000", "model.layers=10", "parallel.pipeline=4", "data.sequence=256"}), true);
  const std::vector<double> cost = model::LayerCosts(plan.spec, 1, 256);
  const auto stage_cost = [&](const std::vector<int>& first) {
    double worst = 0;
    for (size_t s = 0; s + 1 < first.size(); ++s)
      worst = std::max(worst, std::accumulate(cost.begin() + first[s], cost.begin() + first[s + 1], 0.0));
    return worst;
  };
  // No other cut has a cheaper most expensive stage: all of them are tried.
  double best = std::numeric_limits<double>::max();
  const int layers = static_cast<int>(cost.size());
  for (int a = 1; a < layers; ++a)
    for (int b = a + 1; b < layers; ++b)
      for (int c = b + 1; c < layers; ++c) best = std::min(best, stage_cost({0, a, b, c, layers}));
  EXPECT_DOUBLE_EQ(stage_cost(plan.partition.first), best);
  const std::vector<int> blocks = Blocks(plan);
  EXPECT_LT(blocks[3], blocks[1]) << "the last stage has the head and must have fewer blocks";
  const auto even =
      session::MakePlan(*tiny::Settings({"model.vocabulary=20000", "model.layers=10", "parallel.pipeline=4",
                                         "data.sequence=256", "parallel.stages='even'"}),
                        true);
  EXPECT_LT(stage_cost(plan.partition.first), stage_cost(even.partition.first));
}

// sail-sg/zero-bubble issue 73, pytorch issue 188833: F0 on rank 1 started after F1 of rank 0.
TEST(IssueC8, WarmUpIsAsFastAsTheDependenciesAllow) {
  const auto plan =
      session::MakePlan(*tiny::Settings({"parallel.pipeline=4", "train.batch=8", "train.micro_batch=1"}), true);
  const schedule::UniformActionCosts costs(
      {.forward = 1, .backward_input = 1, .backward_weight = 1, .hop = Rational(1, 4)});
  const auto replayed = simulate::ReplayInOrder<Rational>(plan.schedule, costs);
  Rational end_of_first(-1), start_of_second(-1);
  for (int r = 0; r < 2; ++r) {
    for (size_t i = 0; i < plan.schedule.ranks[r].size(); ++i) {
      const schedule::Key& key = plan.schedule.ranks[r][i].key;
      if (key.kind != schedule::Kind::forward || key.micro_batch != 0) continue;
      (r == 0 ? end_of_first : start_of_second) = r == 0 ? replayed.times[r][i].end : replayed.times[r][i].start;
    }
  }
  EXPECT_EQ(end_of_first, Rational(1));
  EXPECT_EQ(start_of_second, Rational(5, 4)) << "after F0 of rank 0 and the hop, not after its F1";
}

// The same as measured: rank 1 works on micro-batch 0 while rank 0, whose next micro-batch takes long, is at it.
TEST(IssueC8, TheNextRankStartsWhileThisOneGoesOn) {
  const auto settings = tiny::Settings({"parallel.pipeline=2", "train.micro_batch=1"});
  const auto run = session::Prepare(*settings, tiny::EqualSamples());
  runtime::TrainLoop loop = session::MakeLoop(*settings, *run);
  loop.timeline_count = 2;
  loop.bind = [bind = loop.bind](int64_t step, int64_t applied) {
    runtime::StepBinding binding = bind(step, applied);
    binding.materialize = [materialize = binding.materialize](int m) {
      if (m == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return materialize(m);
    };
    return binding;
  };
  const runtime::TrainOutcome outcome = runtime::RunTrainLoop(loop);
  const auto forward = [&](int rank, int m) {
    for (const schedule::Event& event : outcome.timeline.events)
      if (event.step == 1 && event.rank == rank && event.action.key.kind == schedule::Kind::forward &&
          event.action.key.micro_batch == m)
        return event;
    throw InternalError("no such event");
  };
  EXPECT_GT(forward(0, 1).end - forward(0, 1).start, 0.3);
  EXPECT_LT(forward(1, 0).end, forward(0, 1).end) << "F0 of rank 1 waited for F1 of rank 0";
}

// pytorch/torchtitan PR 1186: interleaved zero bubble hangs on four ranks with two chunks each. It ends, with the bits
// of the reference. What the verifier says of it: plan/c_schedules_and_hangs_test.cc.
TEST(IssueC3, InterleavedZeroBubbleOnFourRanksEqualsTheReference) {
  const auto samples = tiny::EqualSamples();
  const std::vector<std::string> computation = {"model.layers=6", "train.micro_batch=1"};
  const session::RecordedRun reference = tiny::Reference(computation, samples);
  for (const std::vector<std::string>& layout : std::vector<std::vector<std::string>>{
           {"parallel.schedule='zb-v'"},
           {"parallel.schedule='interleaved-1f1b'"},
           {"parallel.schedule='interleaved-1f1b'", "parallel.split_backward='always'"}})
    tiny::ExpectEqualBits(
        reference,
        tiny::RunLayout(tiny::With(tiny::With(computation, {"parallel.pipeline=4", "parallel.chunks=2"}), layout),
                        samples));
}

// pytorch/torchtitan PR 4226: a NaN was found after the update, and only on logging steps. All ranks, also those
// without the loss, stop before the update.
TEST(IssueF2, NonFiniteStopsAllRanksBeforeTheUpdate) {
  const auto samples = tiny::EqualSamples();
  for (const std::vector<std::string>& layout :
       std::vector<std::vector<std::string>>{{"parallel.pipeline=2"}, {"parallel.pipeline=2", "parallel.data=2"}}) {
    const auto two_steps = tiny::RunLayout(tiny::With({"train.steps=2"}, layout), samples);
    const auto settings = tiny::Settings(tiny::With({"train.steps=5"}, layout));
    const auto run = session::Prepare(*settings, samples);
    run->job.loss_fault = [](int64_t step, int m, double loss) { return step == 2 && m == 1 ? std::nan("") : loss; };
    runtime::TrainLoop loop = session::MakeLoop(*settings, *run);
    // Due after the step that goes wrong: what is saved is the state before it, and says so.
    loop.save_after = [](int64_t step) { return step == 2; };
    loop.save_at_stop = true;
    checkpoint::NamedTensors saved;
    std::vector<std::pair<int64_t, int64_t>> saves;
    const checkpoint::TemporaryDirectory directory;
    loop.saving.emplace(runtime::SaverOptions{.directory = directory.path()});
    loop.state_after = [](const runtime::StepReport& report) {
      return checkpoint::TrainState{.step = report.step + 1, .applied_updates = report.applied_updates};
    };
    loop.published = [&](const std::string& path) {
      const checkpoint::Checkpoint from(path);
      saves.push_back({from.state().step - 1, from.state().applied_updates});
      for (const auto& [name, tensor] : from.model()) saved[name] = from.ReadModel(tensor.spec);
    };
    std::string fault;
    int applied = 0;
    loop.after_step = [&](const runtime::StepReport& report) {
      applied += report.result.applied;
      if (!report.result.applied) fault = report.result.verdict.first_fault;
      return report.result.applied ? runtime::AfterStep::go_on : runtime::AfterStep::stop;
    };
    const runtime::TrainOutcome outcome = runtime::RunTrainLoop(loop, /*keep_state=*/true);
    EXPECT_EQ(applied, 2);
    EXPECT_EQ(outcome.steps, 3);
    EXPECT_NE(fault.find("micro-batch 1"), std::string::npos) << fault;
    EXPECT_EQ(checkpoint::Compare(two_steps.parameters, outcome.parameters).verdict, checkpoint::Verdict::equal);
    EXPECT_EQ(checkpoint::Compare(two_steps.optimizer, outcome.optimizer).verdict, checkpoint::Verdict::equal);
    EXPECT_EQ(saves, (std::vector<std::pair<int64_t, int64_t>>{{1, 2}}));
    EXPECT_EQ(checkpoint::Compare(two_steps.parameters, saved).verdict, checkpoint::Verdict::equal);
  }
}

// deepspeedai/DeepSpeed issue 2005: pages of output before training starts. At most 40 lines before step 1; the whole
// configuration is in a file.
TEST(IssueI6, OutputIsShort) {
  const std::string root = testing::TempDir() + "/penstock_i6";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root);
  const std::string config = root + "/small.toml";
  {
    FILE* file = std::fopen(config.c_str(), "w");
    std::fputs(
        "[train]\nsteps = 2\nbatch = 4\n[model]\nlayers = 2\nhidden = 32\n[data]\nsequence = 16\nmax_bytes = \"200 "
        "kB\"\n[parallel]\npipeline = 2\n",
        file);
    std::fclose(file);
  }
  std::ostringstream out, log;
  EXPECT_EQ(session::RunTrain({.config = config, .assignments = {"run.dir=" + root + "/run"}, .json = false}, out, log),
            0);
  const std::string text = log.str();
  const size_t first_step = text.find("step");
  const size_t progress = text.find("loss");
  ASSERT_NE(first_step, std::string::npos) << text;
  EXPECT_LE(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(progress), '\n'), 40) << text;
  EXPECT_TRUE(std::filesystem::exists(root + "/run/config.toml"));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace penstock
