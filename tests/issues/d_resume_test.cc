// Cases D1, D3, D4 (checkpoints) and E2, E4 (data): what goes on after loading is the run that was never interrupted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "checkpoint/manifest.h"
#include "issues/continued.h"
#include "runtime/replicas.h"
#include "session/run/train_command.h"

namespace penstock {
namespace {

using Strings = std::vector<std::string>;

const Strings kTwoReplicas = {"parallel.data=2"};

// https://github.com/NVIDIA/Megatron-LM/pull/6920: after loading, another model goes on, without an error and with a
// loss that looks normal. Four steps straight are two steps, a checkpoint and two more.
TEST(IssueD1, TwoAndTwoStepsAreFour) {
  const auto samples = tiny::EqualSamples(40);
  const Strings computation = {"train.steps=4"};
  const tiny::Trained straight = tiny::Train(tiny::With(computation, kTwoReplicas), samples);
  ASSERT_EQ(straight.losses.size(), 4u);
  tiny::ExpectSameEnd(straight, tiny::Continued(computation, kTwoReplicas, kTwoReplicas, 2, samples));
  // It matters that the state is loaded: from initial weights the same two steps are others.
  const tiny::Trained fresh = tiny::Train(tiny::With({"train.steps=2"}, kTwoReplicas), samples);
  EXPECT_NE(straight.losses[2], fresh.losses[0]);
}

// And a replica that differs after loading is a loud failure, whichever it is and whatever differs.
TEST(IssueD1, AReplicaThatDiffersEndsTheRun) {
  const auto samples = tiny::EqualSamples();
  const checkpoint::TemporaryDirectory directory;
  tiny::Train(kTwoReplicas, samples, {.end_step = 2, .save_in = directory.path()});
  const checkpoint::Checkpoint from(checkpoint::ResolveCheckpoint(directory.path()));
  const auto settings = tiny::Settings(kTwoReplicas);
  const auto run = session::Prepare(*settings, samples);
  const runtime::Job& job = run->job;
  const auto specs = runtime::ModelTensors(job);
  for (const int changed : {-1, 0, 1})
    for (const bool moment : {false, true}) {
      std::string message;
      try {
        comm::RunThreadRanks(2, {}, [&](comm::Communicator& communicator) {
          runtime::RankState state(job, run->plan.schedule, communicator.rank());
          for (size_t p = 0; p < specs.size(); ++p)
            state.parameter(static_cast<int>(p)).copy_(from.ReadModel(specs[p]));
          if (communicator.rank() == changed) {
            const int last = static_cast<int>(specs.size()) - 1;
            at::Tensor t = moment ? state.optimizer_state(last).tensor(0) : state.parameter(last).view({-1});
            t.data_ptr<double>()[0] += 1e-12;
          }
          runtime::RequireEqualReplicas(job, run->plan.schedule, communicator, state);
        });
      } catch (const WorldError& error) {
        message = error.what();
      }
      if (changed < 0)
        EXPECT_EQ(message, "");
      else
        EXPECT_NE(message.find("ranks 0 and 1 hold different values of"), std::string::npos) << message;
    }
}

// https://github.com/deepspeedai/Megatron-DeepSpeed/issues/248: the loss curve shifts after loading. Dropout, a warm-up
// and a loss scale that changes are all under way when the state is saved.
TEST(IssueD3, DropoutWarmUpAndLossScaleGoOn) {
  const auto samples = tiny::EqualSamples(40);
  const Strings computation = {"train.steps=7",
                               "train.micro_batch=1",
                               "model.dropout=0.1",
                               "optimizer.warmup=5",
                               "optimizer.schedule='cosine'",
                               "numerics.precision='fp16'",
                               "numerics.loss_scale_initial=16777216",
                               "numerics.loss_scale_backoff=0.0625",
                               "numerics.loss_scale_interval=3"};
  const Strings other = {"parallel.pipeline=2"};
  const tiny::Trained straight = tiny::Train(computation, samples);
  // The first step is left out; the third update in a row doubles the scale: two of them are before the save.
  EXPECT_EQ(straight.applied, (std::vector<bool>{false, true, true, true, true, true, true}));
  EXPECT_EQ(straight.scales, (std::vector<double>{0x1p24, 0x1p20, 0x1p20, 0x1p20, 0x1p21, 0x1p21, 0x1p21}));
  EXPECT_EQ(straight.updates, 6);
  for (const int64_t saved_after : {int64_t{1}, int64_t{2}}) {
    tiny::ExpectSameEnd(straight, tiny::Continued(computation, {}, {}, saved_after, samples));
    tiny::ExpectSameEnd(straight, tiny::Continued(computation, kTwoReplicas, other, saved_after, samples));
  }
}

// https://github.com/deepspeedai/DeepSpeed/issues/2898, /3810, /2921: a checkpoint of four replicas is continued by
// other numbers of them, and by another pipeline, without a conversion.
TEST(IssueD4, AnyNumberOfRanksGoesOn) {
  const auto samples = tiny::EqualSamples(60);
  const Strings computation = {"train.steps=4", "train.batch=12", "train.micro_batch=1"};
  const tiny::Trained straight = tiny::Train(computation, samples);
  const auto go_on = [&](const Strings& before, const std::vector<Strings>& layouts) {
    const checkpoint::TemporaryDirectory directory;
    tiny::Train(tiny::With(computation, before), samples, {.end_step = 2, .save_in = directory.path()});
    const checkpoint::Checkpoint from(checkpoint::ResolveCheckpoint(directory.path()));
    for (const Strings& layout : layouts)
      tiny::ExpectSameEnd(straight, tiny::Train(tiny::With(computation, layout), samples, {.from = &from}),
                          before[0] + " to " + layout[0]);
  };
  go_on({"parallel.data=4"}, {{"parallel.data=1"}, {"parallel.data=2"}, {"parallel.data=3"}, {"parallel.data=6"}});
  go_on({"parallel.pipeline=2"}, {{"parallel.pipeline=4"}, {"parallel.pipeline=1", "parallel.data=2"}});
}

// https://github.com/pytorch/torchtitan/issues/409, https://github.com/PrimeIntellect-ai/prime-rl/pull/1035: only rank
// 0's position in the data was saved. There is one position, of all ranks.
TEST(IssueE2, TheOrderOfSamplesIsThatOfTheUninterruptedRun) {
  const auto samples = tiny::EqualSamples(40);
  const Strings computation = {"train.steps=4", "train.micro_batch=1"};
  const tiny::Trained straight = tiny::Train(tiny::With(computation, {"parallel.data=4"}), samples);
  for (size_t step = 0; step < 4; ++step) {
    EXPECT_EQ(straight.tokens[step].size(), 8u * 16u);
    for (size_t other = 0; other < step; ++other) EXPECT_NE(straight.tokens[step], straight.tokens[other]);
  }
  for (const char* after : {"parallel.data=4", "parallel.data=2", "parallel.data=8"}) {
    const tiny::Trained rest = tiny::Continued(computation, {"parallel.data=4"}, {after}, 2, samples);
    EXPECT_EQ(rest.tokens, (std::vector<std::vector<int64_t>>(straight.tokens.begin() + 2, straight.tokens.end())))
        << after;
  }
}

// A checkpoint without the position cannot be opened.
TEST(IssueE2, AMissingPositionIsAnError) {
  const checkpoint::TemporaryDirectory directory;
  tiny::Train({"train.steps=1"}, tiny::EqualSamples(), {.save_in = directory.path()});
  const std::string path = checkpoint::ResolveCheckpoint(directory.path());
  const std::string file = path + "/state.json", text = ReadFile(file);
  for (const std::string key : {"samples_seen", "step", "applied_updates"}) {
    // A manifest as a program would write it that forgot the key: all its hashes are right.
    auto json = nlohmann::ordered_json::parse(text);
    json.at("state").erase(key);
    json["hash"] = Hash(json.at("state").dump()).Hex();
    try {
      checkpoint::ParseManifest(json.dump(1) + "\n", file);
      ADD_FAILURE() << "a manifest without '" << key << "' was read";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("key '" + key + "' not found"), std::string::npos) << error.what();
    }
  }
}

// And one whose position is not where its steps must have brought it is not continued.
TEST(IssueE2, APositionThatCannotBeIsAnError) {
  const checkpoint::TemporaryDirectory directory;
  setenv("XDG_CONFIG_HOME", directory.path().c_str(), 1);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "line " + std::to_string(i * i) + "\n";
  FileSystem::Real().CreateFolders(directory / "text");
  WriteFileAtomically(directory / "text/a.txt", text);
  WriteFileAtomically(directory / "config.toml",
                      "[run]\ndir = \"" + directory.path() + "/run\"\n[train]\nsteps = 2\nbatch = 4\n[model]\n" +
                          "layers = 1\nhidden = 16\nheads = 2\n[data]\nsource = \"text\"\npath = \"" +
                          directory.path() + "/text\"\nsequence = 8\n");
  const auto train = [&](const Strings& assignments) {
    std::ostringstream out, log;
    return session::RunTrain({.config = directory / "config.toml", .assignments = assignments}, out, log);
  };
  EXPECT_EQ(train({}), 0);
  const std::string path = checkpoint::ResolveCheckpoint(directory / "run/checkpoints") + "/state.json";
  checkpoint::Manifest manifest = checkpoint::ParseManifest(ReadFile(path), path);
  EXPECT_EQ(manifest.state.samples_seen, 8);
  manifest.state.samples_seen = 2;  // what one of four ranks has seen
  WriteFileAtomically(path, checkpoint::FormatManifest(manifest), /*overwrite=*/true);
  try {
    train({"train.steps=3"});
    ADD_FAILURE() << "went on from a position that cannot be";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("at sample 2 of the data after 2 steps of 4"), std::string::npos)
        << error.what();
  }
  manifest.state.samples_seen = 8;
  WriteFileAtomically(path, checkpoint::FormatManifest(manifest), /*overwrite=*/true);
  EXPECT_EQ(train({"train.steps=3"}), 0);
  unsetenv("XDG_CONFIG_HOME");
}

// https://github.com/NVIDIA/Megatron-LM/issues/2829: is it the same training with more replicas? Data and dropout
// belong to the sample, not to the rank, so it is.
TEST(IssueE4, MoreReplicasAreTheSameTraining) {
  const auto samples = tiny::EqualSamples(80);
  const Strings computation = {"train.steps=4", "train.batch=16", "train.micro_batch=2", "model.dropout=0.2"};
  const tiny::Trained straight = tiny::Train(tiny::With(computation, kTwoReplicas), samples);
  tiny::ExpectSameEnd(straight, tiny::Continued(computation, kTwoReplicas, {"parallel.data=4"}, 2, samples));
  // Dropout is on: without it the losses are others.
  const tiny::Trained plain = tiny::Train(tiny::With(computation, {"model.dropout=0.0"}), samples);
  EXPECT_NE(straight.losses, plain.losses);
}

}  // namespace
}  // namespace penstock
