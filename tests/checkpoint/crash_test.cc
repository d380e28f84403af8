// Saving is interrupted at every single operation on the file system, by an error and by a kill, with and without a
// half-written append: afterwards a valid checkpoint is there, the old or the new one, and saving again works.

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "base/faulty_file_system.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "checkpoint/temporary_directory.h"

namespace penstock::checkpoint {
namespace {

void Save(const std::string& directory, int64_t step, float value, int keep_last,
          FileSystem& files = FileSystem::Real()) {
  SaveCheckpoint(directory, {.step = step}, FromMemory({{"a", at::full({100}, value)}, {"b", at::full({0}, value)}}),
                 FromMemory({{"sgd.momentum/a", at::full({100}, value)}}), {.keep_last = keep_last, .files = files});
}

float Value(const std::string& path) {
  const Checkpoint checkpoint(path);
  checkpoint.Verify();
  return checkpoint.ReadModel({"a", at::kFloat, {100}}).const_data_ptr<float>()[0];
}

class Crash : public testing::TestWithParam<bool> {  // true: killed; false: one operation fails
 protected:
  void SetUp() override { log::SetLevel(log::Level::kOff); }
  void TearDown() override { log::SetLevel(log::Level::kInfo); }
};

TEST_P(Crash, AtEveryOperationOfASave) {
  for (const bool same_step : {false, true}) {
    FaultyFileSystem files;
    int64_t operations = 0;
    {
      const TemporaryDirectory directory;
      Save(directory.path(), 1, 1.0f, 1);
      files.set_fault({});
      Save(directory.path(), same_step ? 1 : 2, 2.0f, 1, files);
      operations = files.operations();
    }
    ASSERT_GT(operations, 15);
    int old_kept = 0, new_published = 0;
    for (int64_t operation = 1; operation <= operations; ++operation) {
      const TemporaryDirectory directory;
      Save(directory.path(), 1, 1.0f, 1);
      files.set_fault({.operation = operation, .written = 0.5, .crash = GetParam()});
      bool failed = false;
      try {
        Save(directory.path(), same_step ? 1 : 2, 2.0f, 1, files);
      } catch (const WorldError&) {
        failed = true;
      }
      const FoundCheckpoint found = FindNewestCheckpoint(directory.path());
      ASSERT_TRUE(found.path) << "operation " << operation;
      const float value = Value(*found.path);
      EXPECT_TRUE(failed || value == 2.0f) << "operation " << operation;
      if (!failed) {
        for (const std::string& name : files.NotDurable())  // only a removal may be half done
          EXPECT_FALSE(name.rfind(directory.path(), 0) == 0 && name.find(".tmp-pruned-") == std::string::npos) << name;
      }
      ++(value == 1.0f ? old_kept : new_published);
      // The run goes on.
      Save(directory.path(), 3, 3.0f, 1);
      EXPECT_EQ(FileSystem::Real().List(directory.path()), (std::vector<std::string>{"latest", "step-00000003"}));
      EXPECT_EQ(Value(*FindNewestCheckpoint(directory.path()).path), 3.0f);
    }
    EXPECT_GT(old_kept, 0);
    EXPECT_GT(new_published, 0);
  }
}

// What is published survives a loss of power: every name down to the files is on stable storage, in new folders too.
TEST(SaveCheckpoint, IsDurableUpToWhatWasThere) {
  const TemporaryDirectory directory;
  FaultyFileSystem files;
  for (const int64_t step : {1, 1, 2, 3}) {
    Save(directory / "run/checkpoints", step, 1.0f, 2, files);
    EXPECT_EQ(files.NotDurable(), std::vector<std::string>{}) << step;
  }
  FileSystem::Real().Rename(directory / "run/checkpoints/step-00000002",
                            directory / "run/checkpoints/step-00000002.replaced-1-1", false);
  Save(directory / "run/checkpoints", 4, 1.0f, 0, files);
  EXPECT_TRUE(FileSystem::Real().Exists(directory / "run/checkpoints/step-00000002"));
  EXPECT_EQ(files.NotDurable(), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Faults, Crash, testing::Bool(),
                         [](const auto& info) { return info.param ? "killed" : "failed"; });

}  // namespace
}  // namespace penstock::checkpoint
