// Case F1: https://github.com/deepspeedai/DeepSpeed/issues/697, https://github.com/deepspeedai/DeepSpeed/issues/931:
// "reducing loss scale to 1" was printed for ever, and what overflowed was never said.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "issues/continued.h"
#include "report/metrics.h"
#include "report/run_files.h"
#include "session/run/train_command.h"

namespace penstock {
namespace {

using Strings = std::vector<std::string>;

// The leaf of parameter `name` from micro-batch `micro_batch` has one infinite element, in steps below `until`.
std::function<void(runtime::Job&)> InfiniteGradient(const std::string& name, int micro_batch, int64_t until) {
  return [=](runtime::Job& job) {
    const int wanted = job.spec.parameter_index(name);
    job.leaf_fault = [=](int64_t step, int m, int parameter, at::Tensor& gradient) {
      if (parameter != wanted || m != micro_batch || step >= until) return;
      gradient = gradient.clone();
      gradient.view({-1})[1] = std::numeric_limits<double>::infinity();
    };
  };
}

class IssueF1 : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/penstock_f1_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/text");
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    std::string text;
    for (int i = 0; i < 4000; ++i) text += "line " + std::to_string(i * i) + "\n";
    WriteFileAtomically(folder_ + "/text/a.txt", text);
    WriteFileAtomically(
        folder_ + "/config.toml",
        "[run]\ndir = \"" + folder_ + "/run\"\n[train]\nsteps = 40\nbatch = 8\nmicro_batch = 2\n" +
            "[model]\nlayers = 2\nhidden = 32\nheads = 4\n[data]\nsource = \"text\"\npath = \"" + folder_ +
            "/text\"\nsequence = 16\n[numerics]\nprecision = \"fp16\"\nloss_scale_initial = 8\nloss_scale_min = 1\n" +
            "loss_scale_max_skipped = 10\n[parallel]\npipeline = 2\ndata = 2\n");
  }
  void TearDown() override {
    unsetenv("XDG_CONFIG_HOME");
    std::filesystem::remove_all(folder_);
  }
  // The message of the WorldError that ends the run.
  std::string Failure(const Strings& assignments, const std::function<void(runtime::Job&)>& change = {}) {
    std::ostringstream out;
    try {
      session::RunTrain({.config = folder_ + "/config.toml", .assignments = assignments, .change_job = change}, out,
                        log_);
    } catch (const WorldError& error) {
      EXPECT_NE(error.exit_code(), 0);
      return error.what();
    }
    return "";
  }
  std::vector<report::StepMetrics> Metrics() const {
    return report::ReadMetrics(folder_ + "/run/" + std::string(report::kMetricsFile));
  }
  std::string folder_;
  std::ostringstream log_;
};

TEST_F(IssueF1, TheRunEndsAfterTheLimitAndNamesTensorAndRank) {
  constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();
  const std::string failure = Failure({}, InfiniteGradient("blocks.1.mlp.fc1.weight", 3, kAlways));
  // Micro-batch 3 belongs to the second replica; the second block to the second stage: the last of four ranks.
  EXPECT_NE(failure.find("step 1: the gradient of 'blocks.1.mlp.fc1.weight' in layer 'blocks.1' from micro-batch 3 "
                         "on rank 3 is not finite"),
            std::string::npos)
      << failure;
  EXPECT_NE(failure.find("10 updates in a row were left out"), std::string::npos) << failure;
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 10u);
  for (size_t i = 0; i < metrics.size(); ++i) {
    EXPECT_FALSE(metrics[i].applied);
    EXPECT_EQ(metrics[i].loss_scale, i < 3 ? 8.0 / (1 << i) : 1.0);
  }
  EXPECT_NE(log_.str().find("update skipped (not finite), loss scale was 4"), std::string::npos) << log_.str();
  // What is saved is the state before the step that ended the run; going on from it ends at once, for the same reason.
  const std::string again = Failure({}, InfiniteGradient("blocks.1.mlp.fc1.weight", 3, kAlways));
  EXPECT_NE(again.find("10 updates in a row were left out"), std::string::npos) << again;
  EXPECT_EQ(Metrics().size(), 10u);
}

// Without any seam: a scale that nothing can stand.
TEST_F(IssueF1, AScaleThatIsTooLargeForever) {
  const std::string failure =
      Failure({"numerics.loss_scale_initial=1073741824", "numerics.loss_scale_min=1073741824",
               "numerics.loss_scale_max=1073741824", "numerics.loss_scale_max_skipped=3", "parallel.data=1"});
  EXPECT_NE(failure.find("in layer 'head' from micro-batch 0 on rank 1 is not finite"), std::string::npos) << failure;
  EXPECT_NE(failure.find("3 updates in a row were left out"), std::string::npos) << failure;
  EXPECT_NE(failure.find("Lower optimizer.lr or numerics.loss_scale_min,"), std::string::npos) << failure;
  EXPECT_EQ(Metrics().size(), 3u);
}

// Updates that are left out are no updates: the learning rate goes on where it was, and the scale recovers.
TEST(IssueF1Schedule, SkippedStepsAreNotInTheLearningRate) {
  const auto samples = tiny::EqualSamples(80);
  const Strings computation = {"numerics.precision='fp16'", "optimizer.warmup=3", "numerics.loss_scale_initial=1024",
                               "numerics.loss_scale_interval=2", "train.micro_batch=1"};
  const tiny::Trained clean = tiny::Train(tiny::With(computation, {"train.steps=4"}), samples);
  ASSERT_EQ(clean.updates, 4);
  for (const Strings& layout : std::vector<Strings>{{}, {"parallel.pipeline=2"}, {"parallel.data=3"}}) {
    const tiny::Trained t = tiny::Train(tiny::With(tiny::With(computation, {"train.steps=7"}), layout), samples,
                                        {.change = InfiniteGradient("blocks.0.attn.proj.weight", 5, 3)});
    EXPECT_EQ(t.applied, (std::vector<bool>{false, false, false, true, true, true, true}));
    EXPECT_EQ(t.scales, (std::vector<double>{1024, 512, 256, 128, 128, 256, 256}));
    EXPECT_EQ(std::vector<double>(t.rates.begin() + 3, t.rates.end()), clean.rates);
    EXPECT_EQ(t.updates, 4);
    EXPECT_EQ(t.loss_scale, (LossScaleState{.scale = 512, .clean = 0, .skipped_in_a_row = 0, .skipped = 3}));
    for (const std::string& fault : t.faults) EXPECT_NE(fault.find("blocks.0.attn.proj.weight"), std::string::npos);
  }
}

// Of several faults the one is named that a single rank would have come to first: in the first micro-batch, the last
// layer.
TEST(IssueF1Schedule, TheFirstFaultDoesNotDependOnTheLayout) {
  const auto samples = tiny::EqualSamples();
  const Strings computation = {"numerics.precision='fp16'", "train.steps=1", "train.micro_batch=1"};
  const auto both = [](runtime::Job& job) {
    const auto a = std::make_shared<runtime::Job>(job), b = std::make_shared<runtime::Job>(job),
               c = std::make_shared<runtime::Job>(job);
    InfiniteGradient("blocks.3.mlp.fc2.weight", 6, 9)(*a);
    InfiniteGradient("blocks.0.mlp.fc2.weight", 2, 9)(*b);
    InfiniteGradient("blocks.2.mlp.fc2.weight", 2, 9)(*c);
    job.leaf_fault = [a, b, c](int64_t step, int m, int parameter, at::Tensor& gradient) {
      for (const auto& one : {a, b, c}) one->leaf_fault(step, m, parameter, gradient);
    };
  };
  const std::vector<std::pair<Strings, int>> layouts = {
      {{}, 0}, {{"parallel.data=2"}, 0}, {{"parallel.data=4"}, 1}, {{"parallel.data=2", "parallel.pipeline=2"}, 1}};
  for (const auto& [layout, rank] : layouts) {
    const tiny::Trained t = tiny::Train(tiny::With(computation, layout), samples, {.change = both});
    ASSERT_EQ(t.faults.size(), 1u);
    EXPECT_NE(t.faults[0].find("'blocks.2.mlp.fc2.weight' in layer"), std::string::npos) << t.faults[0];
    EXPECT_NE(t.faults[0].find(fmt::format("micro-batch 2 on rank {} is", rank)), std::string::npos) << t.faults[0];
  }
}

}  // namespace
}  // namespace penstock
