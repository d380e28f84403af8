// What a start finds in its run directory, and what may be done with it: a run that another process goes on with, one
// that was killed early, one whose checkpoints are damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "report/metrics.h"
#include "report/run_files.h"
#include "session/run/run_directory.h"
#include "session/run/tiny_run.h"

namespace penstock::session {
namespace {

namespace fs = std::filesystem;

std::string Step(int64_t step) { return checkpoint::StepName(step); }

std::vector<std::string> Published(const std::string& run) {
  return checkpoint::EntriesOfKind(run + "/checkpoints", checkpoint::EntryKind::published, FileSystem::Real());
}

// Changes a byte of the tensors.
void Damage(const std::string& checkpoint) {
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::string bytes = ReadFile(entry.path());
    bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
    WriteFileAtomically(entry.path(), bytes, /*overwrite=*/true);
    return;
  }
  FAIL() << checkpoint << " has no shard";
}

std::string FingerprintOf(const std::string& run) {
  return checkpoint::Checkpoint(checkpoint::ResolveCheckpoint(run + "/checkpoints")).state().model_fingerprint;
}

// A job that is queued again while its former process still runs must not decide by what lies there now: the former
// one may publish more, and end, before the second one takes the directory.
TEST(RunDirectory, IsLockedBeforeItIsLookedAt) {
  TinyRun run({"checkpoint.every=2"});
  const LoadedSettings settings = run.Settings({"train.steps=6"});
  {
    const RunDirectory second = InspectRunDirectory(settings, FingerprintOf(run.path()));
    EXPECT_EQ(second.first_step, 4);
    EXPECT_THROW(run.Train({"train.steps=8"}), UserError) << "trains where another one has decided to go on";
    EXPECT_EQ(Published(run.path()).back(), Step(4));
  }
  run.Train({"train.steps=8"});
  const RunDirectory later = InspectRunDirectory(settings, FingerprintOf(run.path()));
  EXPECT_EQ(later.first_step, 8);
}

// Where there was nothing to lock, whoever comes first has the directory; the other one writes nothing into it.
TEST(RunDirectory, ThatAppearsMeanwhileIsLeftAlone) {
  TinyRun run({"checkpoint.every=2"});
  const LoadedSettings settings = run.Settings({"run.dir='" + run.folder() + "/other'"});
  RunDirectory second = InspectRunDirectory(settings, FingerprintOf(run.path()));
  EXPECT_EQ(second.start, RunStart::fresh);
  fs::rename(run.path(), run.folder() + "/other");
  const std::string config = ReadFile(run.folder() + "/other/config.toml");
  EXPECT_THROW(OpenRunDirectory(second, settings), WorldError);
  EXPECT_EQ(ReadFile(run.folder() + "/other/config.toml"), config);
  EXPECT_EQ(Published(run.folder() + "/other"), (std::vector<std::string>{Step(2), Step(4)}));
}

// Killed after any of the first files: the same command starts.
TEST(RunDirectory, OfARunThatWasKilledAtOnceIsTakenAgain) {
  TinyRun run;
  for (const std::string left : {"lock", "run.json.123.0.tmp", "start_checkpoint.123.0.tmp"}) {
    fs::remove_all(run.path());
    FileSystem::Real().CreateFolders(run.path());
    WriteFileAtomically(run.path() + "/lock", "");
    if (left != "lock") std::ofstream(run.path() + "/" + left) << "{";
    run.Train();
    EXPECT_EQ(Published(run.path()), (std::vector<std::string>{Step(4)})) << left;
  }
  // What is not ours is not taken for it.
  for (const std::string other : {"notes.123.0.tmp", "locks", "run.json.tmp"}) {
    fs::remove_all(run.path());
    FileSystem::Real().CreateFolders(run.path());
    std::ofstream(run.path() + "/" + other) << "mine";
    EXPECT_THROW(run.Train(), UserError) << other;
  }
}

// A start file without the run's record says nothing about this run: a start from initial weights drops it.
TEST(RunDirectory, AStartFileOfAKilledStartIsNotBelieved) {
  TinyRun run;
  fs::remove_all(run.path());
  FileSystem::Real().CreateFolders(run.path());
  WriteFileAtomically(run.path() + "/lock", "");
  WriteFileAtomically(run.path() + "/start_checkpoint", run.folder() + "/nothing");
  run.Train();
  EXPECT_FALSE(fs::exists(run.path() + "/start_checkpoint"));
}

// The first save of a run that starts from a checkpoint is killed: the same command starts from it again.
TEST(RunDirectory, OfARunThatWasKilledInItsFirstSaveIsTakenAgain) {
  TinyRun run;
  const std::vector<std::string> more = {"run.dir='" + run.folder() + "/second'", "train.steps=6",
                                         "checkpoint.resume='" + run.path() + "'"};
  run.Train(more);
  const std::string checkpoints = run.folder() + "/second/checkpoints";
  fs::remove_all(checkpoints);
  FileSystem::Real().CreateFolders(checkpoints + "/" + Step(6) + ".tmp-123-0");
  std::ofstream(checkpoints + "/latest.123.0.tmp") << "st";
  run.Train(more);
  EXPECT_EQ(Published(run.folder() + "/second"), (std::vector<std::string>{Step(6)}));
  // One that is there and damaged is not started over.
  Damage(checkpoints + "/" + Step(6));
  EXPECT_THROW(run.Train(more), UserError);
}

// The words of an entry are in its name, not in the path to it.
TEST(RunDirectory, DamagedCheckpointsAreNeverTrainedOver) {
  TinyRun run;
  for (const std::string name : {"plain", "tried.tmp-1"}) {
    const std::string dir = run.folder() + "/" + name;
    run.Train({"run.dir='" + dir + "'"});
    Damage(dir + "/checkpoints/" + Step(4));
    const std::string shard = dir + "/checkpoints/" + Step(4) + "/" + checkpoint::ShardName(0, 1);
    const std::string bytes = ReadFile(shard);
    EXPECT_THROW(run.Train({"run.dir='" + dir + "'", "train.steps=6"}), UserError) << name;
    EXPECT_EQ(ReadFile(shard), bytes) << name;
    EXPECT_EQ(Published(dir), (std::vector<std::string>{Step(4)})) << name;
  }
}

// A number of kept checkpoints beyond 32 bits is what it says.
TEST(RunDirectory, KeepsAsManyAsAreAskedFor) {
  TinyRun run({"checkpoint.every=1", "checkpoint.keep=4294967297"});
  EXPECT_EQ(Published(run.path()).size(), 4u);
}

// keep = 2, and the newest checkpoint has rotted: the run goes on from the older one, and after its next save two good
// ones are there.
TEST(RunDirectory, DamagedCheckpointsDoNotPushOutGoodOnes) {
  TinyRun run({"checkpoint.every=2", "checkpoint.keep=2"});
  Damage(run.path() + "/checkpoints/" + Step(4));
  run.Train({"train.steps=3"});
  EXPECT_NE(run.log().find("passed over"), std::string::npos);
  EXPECT_EQ(Published(run.path()), (std::vector<std::string>{Step(2), Step(3), Step(4)}));
  // The damaged one is saved anew, and counts again.
  run.Train({"train.steps=5", "checkpoint.every=1"});
  EXPECT_EQ(Published(run.path()), (std::vector<std::string>{Step(4), Step(5)}));
  EXPECT_NO_THROW(checkpoint::Checkpoint(run.path() + "/checkpoints/" + Step(4)).Verify());
}

}  // namespace
}  // namespace penstock::session
