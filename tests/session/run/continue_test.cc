// One checkpoint, written by one layout, continued under twelve others with the same micro-batches: the bits of the run
// that was never interrupted.
#include <gtest/gtest.h>

#include "checkpoint/loss_scale_record.h"
#include "checkpoint/temporary_directory.h"
#include "issues/tiny.h"
#include "runtime/train_loop.h"

namespace penstock {
namespace {

using checkpoint::Verdict;

const std::vector<std::string> kComputation = {
    "train.steps=6",      "train.micro_batch=1", "model.dropout=0.1",        "optimizer.warmup=4",
    "optimizer.clip=0.5", "run.seed=5",          "numerics.precision='fp32'"};

const std::vector<std::vector<std::string>> kLayouts = {
    {},
    {"parallel.pipeline=2"},
    {"parallel.pipeline=4", "parallel.schedule='gpipe'"},
    {"parallel.data=2"},
    {"parallel.data=3"},
    {"parallel.data=4"},
    {"parallel.data=8"},
    {"parallel.data=2", "parallel.pipeline=2"},
    {"parallel.data=2", "parallel.pipeline=3", "parallel.recompute='full'"},
    {"parallel.pipeline=2", "parallel.schedule='zb-h1'"},
    {"parallel.pipeline=2", "parallel.chunks=2", "parallel.schedule='interleaved-1f1b'"},
    {"parallel.pipeline=2", "parallel.chunks=2", "parallel.schedule='zb-v'"},
    {"parallel.pipeline=2", "parallel.schedule='eager-1f1b'", "runtime.serial=true"},
};

void ExpectAllContinue(const std::vector<std::string>& computation,
                       const std::vector<std::vector<std::string>>& layouts, const std::vector<size_t>& writers) {
  const auto samples = tiny::EqualSamples(40);
  const auto straight = tiny::RunLayout(computation, samples);
  for (const size_t writer : writers) {
    const checkpoint::TemporaryDirectory directory;
    std::string saved;
    {
      const auto settings = tiny::Settings(tiny::With(computation, layouts[writer]));
      const auto run = session::Prepare(*settings, samples);
      runtime::TrainLoop loop = session::MakeLoop(*settings, *run);
      loop.end_step = 3;
      loop.saving.emplace(runtime::SaverOptions{.directory = directory.path(), .snapshot_bytes = 1 << 20});
      loop.save_after = [](int64_t) { return true; };
      loop.state_after = [](const runtime::StepReport& report) {
        checkpoint::TrainState state{.step = report.step + 1, .applied_updates = report.applied_updates};
        checkpoint::PutLossScale(report.loss_scale, state);
        return state;
      };
      loop.published = [&](const std::string& path) { saved = path; };
      runtime::RunTrainLoop(loop);
    }
    const checkpoint::Checkpoint from(saved);
    ASSERT_EQ(from.state().step, 3);
    int equal = 0;
    for (const std::vector<std::string>& layout : layouts) {
      const auto settings = tiny::Settings(tiny::With(computation, layout));
      const auto run = session::Prepare(*settings, samples);
      runtime::TrainLoop loop = session::MakeLoop(*settings, *run);
      loop.resume = &from;
      loop.first_step = from.state().step;
      loop.applied_updates = from.state().applied_updates;
      loop.loss_scale = checkpoint::GetLossScale(from.state());
      std::vector<double> losses, norms;
      loop.after_step = [&](const runtime::StepReport& report) {
        losses.push_back(report.result.verdict.loss);
        norms.push_back(report.result.verdict.norm);
        return runtime::AfterStep::go_on;
      };
      const runtime::TrainOutcome outcome = runtime::RunTrainLoop(loop, /*keep_state=*/true);
      const auto parameters = checkpoint::Compare(straight.parameters, outcome.parameters);
      const auto optimizer = checkpoint::Compare(straight.optimizer, outcome.optimizer);
      const std::string name = layout.empty() ? "one rank" : layout[0] + " ...";
      EXPECT_EQ(parameters.verdict, Verdict::equal) << name << "\n" << parameters.ToString();
      EXPECT_EQ(optimizer.verdict, Verdict::equal) << name << "\n" << optimizer.ToString();
      EXPECT_EQ(losses, std::vector<double>(straight.losses.begin() + 3, straight.losses.end())) << name;
      EXPECT_EQ(norms, std::vector<double>(straight.norms.begin() + 3, straight.norms.end())) << name;
      equal += parameters.verdict == Verdict::equal && optimizer.verdict == Verdict::equal;
    }
    EXPECT_EQ(equal, static_cast<int>(layouts.size()));
  }
}

TEST(Continue, TwelveLayoutsFromOneCheckpoint) { ExpectAllContinue(kComputation, kLayouts, {0, 7}); }

// The scale grows while the run is continued: two updates before the checkpoint and one after it are three.
TEST(Continue, Fp16FromOneCheckpoint) {
  ExpectAllContinue(tiny::With(kComputation, {"numerics.precision='fp16'", "numerics.loss_scale_initial=16777216",
                                              "numerics.loss_scale_backoff=0.0625", "numerics.loss_scale_interval=3"}),
                    {{},
                     {"parallel.data=3"},
                     {"parallel.data=2", "parallel.pipeline=2", "parallel.recompute='full'"},
                     {"parallel.pipeline=2", "parallel.schedule='zb-h1'"}},
                    {2});
}

}  // namespace
}  // namespace penstock
