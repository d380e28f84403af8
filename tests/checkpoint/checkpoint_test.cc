#include "checkpoint/checkpoint.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "base/error.h"
#include "base/faulty_file_system.h"
#include "checkpoint/directory.h"
#include "checkpoint/temporary_directory.h"

namespace penstock::checkpoint {
namespace {

NamedTensors Model(double value) {
  return {{"embed.weight", at::full({5, 3}, value, at::kFloat)}, {"head.bias", at::full({7}, -value, at::kFloat)}};
}
NamedTensors Moments(double value) { return {{"adamw.m/embed.weight", at::full({5, 3}, value / 2, at::kFloat)}}; }

TrainState State(int64_t step) {
  return {.step = step,
          .applied_updates = step - 1,
          .samples_seen = 16 * step,
          .seed = UINT64_MAX,
          .loss_scale = 65536.0,
          .model_fingerprint = "gpt 4x32",
          .environment = "test",
          .config = "[train]\nsteps = 3\n",
          .extra = {{"data.epoch", "2"}}};
}

std::string Save(const std::string& directory, int64_t step, SaveOptions options = {}) {
  return SaveCheckpoint(directory, State(step), FromMemory(Model(static_cast<double>(step))),
                        FromMemory(Moments(static_cast<double>(step))), options);
}

// Changes one byte near the end of a file.
void Damage(const std::string& path) {
  std::string bytes = ReadFile(path);
  bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Message(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Checkpoint, RoundTrip) {
  const TemporaryDirectory directory;
  const std::string path = Save(directory / "run/checkpoints", 12);
  EXPECT_EQ(path, directory / "run/checkpoints/step-00000012");
  EXPECT_EQ(ReadFile(directory / "run/checkpoints/latest"), "step-00000012\n");
  const Checkpoint checkpoint(path);
  EXPECT_EQ(checkpoint.state(), State(12));
  checkpoint.RequireModel("gpt 4x32");
  checkpoint.Verify();
  EXPECT_TRUE(checkpoint.ReadModel({"embed.weight", at::kFloat, {5, 3}}).equal(Model(12).at("embed.weight")));
  EXPECT_TRUE(checkpoint.ReadOptimizer({"adamw.m/embed.weight", at::kFloat, {5, 3}})
                  .equal(Moments(12).at("adamw.m/embed.weight")));
  EXPECT_EQ(FileSystem::Real().List(directory / "run/checkpoints"),
            (std::vector<std::string>{"latest", "step-00000012"}));
}

TEST(Checkpoint, WrongModelShapeTypeAndNameAreNamed) {
  const TemporaryDirectory directory;
  const Checkpoint checkpoint(Save(directory.path(), 1));
  EXPECT_TRUE(Contains(Message([&] { checkpoint.RequireModel("gpt 8x32"); }), "gpt 4x32"));
  EXPECT_TRUE(Contains(Message([&] { checkpoint.ReadModel({"embed.weight", at::kFloat, {5, 4}}); }), "[5, 3]"));
  EXPECT_TRUE(Contains(Message([&] { checkpoint.ReadModel({"embed.weight", at::kDouble, {5, 3}}); }), "F64"));
  EXPECT_TRUE(Contains(Message([&] { checkpoint.ReadModel({"embed.wieght", at::kFloat, {5, 3}}); }), "did you mean"));
}

TEST(Checkpoint, DamageIsNamed) {
  const TemporaryDirectory directory;
  const std::string path = Save(directory.path(), 3);
  const std::string shard = path + "/" + ShardName(0, 1);
  Damage(shard);
  const std::string read = Message([&] {
    Checkpoint(path).ReadOptimizer({"adamw.m/embed.weight", at::kFloat, {5, 3}});
  });
  EXPECT_TRUE(Contains(read, "adamw.m/embed.weight") && Contains(read, ShardName(0, 1))) << read;
  EXPECT_TRUE(Contains(Message([&] { Checkpoint(path).Verify(); }), "adamw.m/embed.weight"));
  EXPECT_TRUE(Checkpoint(path).ReadModel({"embed.weight", at::kFloat, {5, 3}}).defined());

  Save(directory.path(), 3);
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 9);
  const std::string truncated = Message([&] { Checkpoint(path).Verify(); });
  EXPECT_TRUE(Contains(truncated, "head.bias") && Contains(truncated, "truncated")) << truncated;
  std::filesystem::remove(shard);
  const std::string missing = Message([&] { Checkpoint(path).Verify(); });
  EXPECT_TRUE(Contains(missing, "head.bias") && Contains(missing, "missing")) << missing;

  Save(directory.path(), 3);
  Damage(path + "/state.json");
  EXPECT_TRUE(Contains(Message([&] { Checkpoint{path}; }), "state.json"));
  Save(directory.path(), 3);
  std::string text = ReadFile(path + "/state.json");
  text.replace(text.find("\"seed\": 1"), 9, "\"seed\": 2");
  std::ofstream(path + "/state.json", std::ios::binary) << text;
  EXPECT_TRUE(Contains(Message([&] { Checkpoint{path}; }), "does not match its own hash"));
}

TEST(Checkpoint, TensorsAndManifestMustAgree) {
  const TemporaryDirectory directory;
  const std::string path = Save(directory.path(), 1);
  const std::string shard = path + "/" + ShardName(0, 1);
  WriteSafetensors(shard, FromMemory({{"embed.weight", at::full({5, 3}, 1.0f)}}));
  EXPECT_TRUE(Contains(Message([&] { Checkpoint{path}; }), "head.bias"));
  // Another file of the same size, sound in itself.
  Save(directory.path(), 1);
  std::string bytes = ReadFile(shard);
  bytes.replace(bytes.find("head.bias"), 9, "head.bies");
  std::ofstream(shard, std::ios::binary) << bytes;
  const std::string message = Message([&] { Checkpoint{path}; });
  EXPECT_TRUE(Contains(message, "its header is not the one that was written") && Contains(message, "'head.bias'"))
      << message;
}

TEST(FindNewest, SkipsWhatIsNotValidAndSaysSo) {
  const TemporaryDirectory directory;
  EXPECT_FALSE(FindNewestCheckpoint(directory / "absent").path);
  EXPECT_FALSE(FindNewestCheckpoint(directory.path()).path);
  for (int step = 1; step <= 4; ++step) Save(directory.path(), step);
  EXPECT_EQ(FindNewestCheckpoint(directory.path()).path, directory / "step-00000004");
  Damage(directory / ("step-00000004/" + ShardName(0, 1)));
  std::filesystem::remove(directory / "step-00000003/state.json");
  std::filesystem::create_directory(directory / "step-00000005.tmp-1-0");
  std::filesystem::create_directory(directory / "step-notes");
  const FoundCheckpoint found = FindNewestCheckpoint(directory.path());
  EXPECT_EQ(found.path, directory / "step-00000002");
  ASSERT_EQ(found.skipped.size(), 3u);
  EXPECT_EQ(found.skipped[0].path, directory / "step-00000005.tmp-1-0");
  EXPECT_EQ(found.skipped[1].path, directory / "step-00000003");
  EXPECT_EQ(found.skipped[2].path, directory / "step-00000004");
  EXPECT_TRUE(Contains(found.skipped[2].reason, "adamw.m/embed.weight")) << found.skipped[2].reason;
}

// A run that went back to step 2 and saves step 3 again: that is the newest, not the step 9 of the abandoned branch.
TEST(FindNewest, IsTheOneSavedLast) {
  const TemporaryDirectory directory;
  for (const int step : {2, 9, 3}) Save(directory.path(), step);
  EXPECT_EQ(FindNewestCheckpoint(directory.path()).path, directory / "step-00000003");
}

// What cannot be read now may be whole: an older one must not be taken in its place, nor its count be given again.
TEST(FindNewest, WhatTheWorldKeepsFromBeingReadIsNotDamaged) {
  const TemporaryDirectory directory;
  for (const int step : {1, 2}) Save(directory.path(), step);
  FaultyFileSystem files;
  for (const bool at_open : {true, false}) {
    for (const std::string word : {"step-00000002/state.json", "step-00000002/shard"}) {
      for (const int error : {EIO, EACCES, EMFILE, ESTALE}) {
        files.set_unreadable({.word = word, .error = error, .at_open = at_open});
        for (const bool resolve : {true, false}) {
          try {
            if (resolve)
              ResolveCheckpoint(directory.path(), files);
            else
              FindNewestCheckpoint(directory.path(), files);
            ADD_FAILURE() << word << " " << error << ": an older one is taken";
          } catch (const WorldError& failed) {
            EXPECT_TRUE(Contains(failed.what(), word) && Contains(failed.what(), "try again")) << failed.what();
          }
        }
      }
    }
  }
  files.set_unreadable({.word = "step-00000002/state.json"});
  EXPECT_THROW(Save(directory.path(), 3, {.files = files}), WorldError);
  EXPECT_EQ(FileSystem::Real().List(directory.path()),
            (std::vector<std::string>{"latest", "step-00000001", "step-00000002"}));
  files.set_unreadable({});
  Save(directory.path(), 3, {.files = files});
  EXPECT_EQ(Checkpoint(directory / "step-00000003").manifest().sequence, 3);
  // Damage is, however it shows: a part that is gone, cut, or something else.
  namespace fs = std::filesystem;
  const std::string shard = directory / ("step-00000003/" + ShardName(0, 1));
  const std::string manifest = directory / "step-00000003/state.json";
  for (const std::string& file : {shard, manifest}) {
    const std::string bytes = ReadFile(file);
    for (int kind = 0; kind < 5; ++kind) {
      fs::remove(file);
      if (kind == 1) fs::create_directory(file);
      if (kind == 2) fs::create_symlink(directory / "nothing", file);
      if (kind == 3) std::ofstream(file) << bytes.substr(0, bytes.size() / 2);
      if (kind == 4) std::ofstream(file) << "";
      EXPECT_EQ(FindNewestCheckpoint(directory.path()).path, directory / "step-00000002") << file << kind;
      fs::remove(file);
      std::ofstream(file) << bytes;
    }
  }
}

// Whoever asks for the newest one is told when it is another one.
TEST(ResolveCheckpoint, SaysWhatItPassesOver) {
  const TemporaryDirectory directory;
  for (const int step : {1, 2, 3}) Save(directory.path(), step);
  std::filesystem::create_directory(directory / "step-00000004.tmp-1-0");
  testing::internal::CaptureStderr();
  EXPECT_EQ(ResolveCheckpoint(directory.path()), directory / "step-00000003");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  Damage(directory / ("step-00000003/" + ShardName(0, 1)));
  testing::internal::CaptureStderr();
  EXPECT_EQ(ResolveCheckpoint(directory.path()), directory / "step-00000002");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Contains(said, "passed over '" + directory / "step-00000003" + "'") && Contains(said, "do not match") &&
              Contains(said, "'" + directory / "step-00000002" + "' is taken"))
      << said;
  EXPECT_FALSE(Contains(said, ".tmp-")) << said;
}

// A kill between the two renames of a swap leaves the only checkpoint of its step under another name. The next save, of
// another step, gives it its name back; whether it is kept is a matter of keep_last.
TEST(Publish, AnInterruptedSwapLosesNothing) {
  for (const int keep : {0, 1, 2}) {
    const TemporaryDirectory directory;
    Save(directory.path(), 1);
    std::filesystem::rename(directory / "step-00000001", directory / "step-00000001.replaced-7-0");
    Save(directory.path(), 2, {.keep_last = keep});
    std::vector<std::string> left = {"latest", "step-00000001", "step-00000002"};
    if (keep == 1) left.erase(left.begin() + 1);
    EXPECT_EQ(FileSystem::Real().List(directory.path()), left) << keep;
  }
  // Of several of one step the newest; one that was swapped after all goes.
  const TemporaryDirectory directory;
  for (const char* aside : {"step-00000001.replaced-9-0", "step-00000001.replaced-8-0"}) {
    Save(directory.path(), 1);
    Save(directory / "kept", 5);
    std::filesystem::rename(directory / "step-00000001", directory / aside);
  }
  std::filesystem::copy(directory / "kept/step-00000005", directory / "step-00000005",
                        std::filesystem::copy_options::recursive);
  std::filesystem::rename(directory / "kept/step-00000005", directory / "step-00000005.replaced-7-0");
  std::filesystem::remove_all(directory / "kept");
  Save(directory.path(), 2);
  EXPECT_EQ(FileSystem::Real().List(directory.path()),
            (std::vector<std::string>{"latest", "step-00000001", "step-00000002", "step-00000005"}));
  EXPECT_EQ(Checkpoint(directory / "step-00000001").manifest().sequence, 2);
}

TEST(ResolveCheckpoint, TakesEitherKindOfPath) {
  const TemporaryDirectory directory;
  Save(directory.path(), 1);
  const std::string path = Save(directory.path(), 2);
  EXPECT_EQ(ResolveCheckpoint(directory / "step-00000001"), directory / "step-00000001");
  EXPECT_EQ(ResolveCheckpoint(directory.path()), path);
  EXPECT_TRUE(Contains(Message([&] { ResolveCheckpoint(directory / "nothing"); }), "holds no valid checkpoint"));
}

TEST(SaveCheckpoint, KeepsTheLast) {
  const TemporaryDirectory directory;
  for (int step = 1; step <= 5; ++step) Save(directory.path(), step, {.keep_last = 2});
  EXPECT_EQ(EntriesOfKind(directory.path(), EntryKind::published, FileSystem::Real()),
            (std::vector<std::string>{"step-00000004", "step-00000005"}));
}

TEST(SaveCheckpoint, ReplacesTheSameStepAndRemovesLeftovers) {
  const TemporaryDirectory directory;
  Save(directory.path(), 1);
  std::filesystem::create_directory(directory / "step-00000001.tmp-9-9");
  std::ofstream(directory / "latest.9.9.tmp") << "x";
  SaveCheckpoint(directory.path(), State(1), FromMemory(Model(77.0)), FromMemory({}));
  EXPECT_EQ(FileSystem::Real().List(directory.path()), (std::vector<std::string>{"latest", "step-00000001"}));
  EXPECT_TRUE(Checkpoint(directory / "step-00000001")
                  .ReadModel({"embed.weight", at::kFloat, {5, 3}})
                  .equal(Model(77.0).at("embed.weight")));
}

// D9: one tensor of the source is alive at a time.
TEST(SaveCheckpoint, Streams) {
  const TemporaryDirectory directory;
  std::weak_ptr<int> previous;
  TensorSource source;
  for (int i = 0; i < 5; ++i) source.specs.push_back({"p" + std::to_string(i), at::kFloat, {100}});
  std::vector<int> order;
  source.fetch = [&](int i) {
    EXPECT_TRUE(previous.expired());
    order.push_back(i);
    auto alive = std::make_shared<int>(i);
    previous = alive;
    auto* memory = new std::vector<float>(100, static_cast<float>(i));
    return at::from_blob(
        memory->data(), {100}, [memory, alive](void*) { delete memory; }, at::kFloat);
  };
  SaveCheckpoint(directory.path(), State(1), source, FromMemory({}));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(previous.expired());
}

}  // namespace
}  // namespace penstock::checkpoint
