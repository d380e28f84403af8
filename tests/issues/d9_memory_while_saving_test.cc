// Case D9: out of memory while saving. The state is most of what a rank holds (adam, few tokens); a save may take 0.3
// of the training peak beside it. The rise is bounded by what was allowed, at most by the rank's shard; a save that
// fails leaves the checkpoint before it. https://github.com/hpcaitech/ColossalAI/issues/5585

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/faulty_file_system.h"
#include "base/log.h"
#include "checkpoint/temporary_directory.h"
#include "issues/tiny.h"
#include "runtime/train_loop.h"

namespace penstock {
namespace {

const std::vector<std::string> kComputation = {"model.hidden=128", "train.batch=2", "train.micro_batch=1",
                                               "train.steps=4"};

runtime::TrainOutcome Train(const std::vector<std::string>& layout, const std::string& directory, int64_t snapshot,
                            FileSystem& files = FileSystem::Real()) {
  const auto settings = tiny::Settings(tiny::With(kComputation, layout));
  const auto run = session::Prepare(*settings, tiny::EqualSamples());
  runtime::TrainLoop loop = session::MakeLoop(*settings, *run);
  if (!directory.empty()) {
    loop.saving.emplace(
        runtime::SaverOptions{.directory = directory, .save = {.files = files}, .snapshot_bytes = snapshot});
    loop.save_after = [](int64_t) { return true; };
    loop.state_after = [](const runtime::StepReport& report) {
      return checkpoint::TrainState{.step = report.step + 1, .applied_updates = report.applied_updates};
    };
  }
  return runtime::RunTrainLoop(loop);
}

TEST(IssueD9, SavingStaysInsideItsAllowance) {
  for (const std::vector<std::string>& layout :
       std::vector<std::vector<std::string>>{{}, {"parallel.pipeline=2"}, {"parallel.data=2", "parallel.pipeline=2"}}) {
    const runtime::TrainOutcome plain = Train(layout, "", 0);
    int64_t peak = 0;
    for (const memory::Usage& usage : plain.usage) peak = std::max(peak, usage.peak);
    // What crosses between ranks when they agree on a save: a folder's name, and the record of every shard.
    const int64_t records = 100'000;
    for (const double allowed : {0.0, 0.3, 10.0}) {
      const auto snapshot = static_cast<int64_t>(allowed * static_cast<double>(peak));
      const checkpoint::TemporaryDirectory directory;
      const runtime::TrainOutcome saving = Train(layout, directory.path(), snapshot);
      int64_t state = 0;
      const checkpoint::Checkpoint last(*checkpoint::FindNewestCheckpoint(directory.path()).path);
      for (const auto* tensors : {&last.model(), &last.optimizer()})
        for (const auto& [name, tensor] : *tensors) state += tensor.spec.bytes();
      for (size_t r = 0; r < plain.usage.size(); ++r) {
        const int64_t rise = saving.usage[r].peak - plain.usage[r].peak;
        EXPECT_LE(rise, std::min(snapshot, state) + records) << "rank " << r << " of " << plain.usage.size();
        if (allowed <= 0.3) {
          EXPECT_LE(saving.usage[r].peak - records, 1.3 * static_cast<double>(peak));
        }
      }
    }
  }
}

TEST(IssueD9, AFailedSaveLeavesTheOneBefore) {
  log::SetLevel(log::Level::kOff);
  for (const int64_t operation : {30, 40, 50}) {
    const checkpoint::TemporaryDirectory directory;
    Train({"train.steps=1"}, directory.path(), 0);
    FaultyFileSystem files;
    files.set_fault({.operation = operation, .written = 0.5});
    EXPECT_THROW(Train({}, directory.path(), 1 << 30, files), WorldError);
    const auto found = checkpoint::FindNewestCheckpoint(directory.path());
    ASSERT_TRUE(found.path);
    EXPECT_TRUE(found.skipped.empty());
  }
  log::SetLevel(log::Level::kInfo);
}

}  // namespace
}  // namespace penstock
