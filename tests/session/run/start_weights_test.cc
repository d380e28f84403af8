// checkpoint.weights: comparisons start from them too, and what they must fit.
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/next_step.h"
#include "session/run/compare_command.h"
#include "session/run/tiny_run.h"

namespace penstock {
namespace {

struct Compared {
  int status = 0;
  nlohmann::json json;
};

Compared Compare(const TinyRun& run, std::vector<std::string> assignments,
                 const std::vector<std::string>& assignments_b, const std::string& oracle = "") {
  const std::string config = run.folder() + "/tiny.toml";
  assignments.insert(assignments.end(), {"data.path='" + run.text_path() + "'", "numerics.reproducible=true",
                                         "train.micro_batch=1", "train.steps=2"});
  std::ostringstream out, log;
  Compared result;
  result.status = session::RunCompare({.a = config,
                                       .b = "",
                                       .assignments = assignments,
                                       .assignments_b = assignments_b,
                                       .oracle = oracle,
                                       .sweep = false,
                                       .json = true},
                                      out, log);
  result.json = nlohmann::json::parse(out.str());
  return result;
}

TEST(StartWeights, ComparisonsBeginWithThem) {
  const TinyRun run;
  const std::string weights = "checkpoint.weights='" + run.path() + "'";
  const Compared layouts = Compare(run, {weights}, {"parallel.data=2", "parallel.pipeline=2"});
  EXPECT_EQ(layouts.status, 0) << layouts.json;
  EXPECT_EQ(layouts.json.at("verdict"), "equal");
  const Compared plain = Compare(run, {weights}, {}, "plain");
  EXPECT_EQ(plain.status, 0) << plain.json;
  EXPECT_EQ(plain.json.at("verdict"), "equal");
  EXPECT_EQ(Compare(run, {weights}, {}, "whole").status, 0);
  // Initial weights are others, so they were used above.
  const Compared initial = Compare(run, {weights}, {"checkpoint.weights=''"});
  EXPECT_EQ(initial.status, 1);
  EXPECT_NE(initial.json.at("verdict"), "equal");
  EXPECT_NE(initial.json.at("other_computation").get<std::string>().find("checkpoint.weights"), std::string::npos);
}

TEST(StartWeights, AnotherFunctionOfTheSameTensorsIsRefused) {
  const TinyRun run;
  const std::string weights = "checkpoint.weights='" + run.path() + "'";
  for (const auto& [change, expected] :
       std::vector<std::pair<std::string, std::string>>{{"model.heads=2", "model.heads"},
                                                        {"model.norm_eps=1e-3", "model.norm_eps"},
                                                        {"model.hidden=16", "another model"}}) {
    try {
      Compare(run, {weights, change}, {"parallel.pipeline=2"});
      ADD_FAILURE() << change << " was taken";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

std::string RefusalOf(const TinyRun& run, std::vector<std::string> assignments) {
  assignments.insert(assignments.end(),
                     {"data.path='" + run.text_path() + "'", "run.dir='" + run.folder() + "/other'"});
  std::ostringstream out, log;
  try {
    session::RunTrain({.config = run.folder() + "/tiny.toml", .assignments = assignments, .json = true}, out, log);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

// Case D1: a checkpoint of another run may be gone on from, not as another function of its tensors.
TEST(StartWeights, NeitherIsResumingAsOne) {
  const TinyRun run({"model.family='llama'"});
  const std::string resume = "checkpoint.resume='" + run.path() + "/checkpoints/step-00000004'";
  const std::string refusal =
      RefusalOf(run, {"model.family='llama'", resume, "train.steps=6", "model.heads=2", "model.rope_base=500000.0"});
  EXPECT_NE(refusal.find("model.heads = 4 and this run 2"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("model.rope_base"), std::string::npos) << refusal;
  EXPECT_EQ(RefusalOf(run, {"model.family='llama'", resume, "train.steps=6", "model.rope_base=500000.0",
                            "checkpoint.other_rope=true"}),
            "");
}

// Case D1: a state that is so wrong that its first step cannot be applied must not pass for one that has no check.
TEST(StartWeights, AStateThatGivesNoFiniteStepIsNotTrainedOn) {
  TinyRun run({"train.on_nonfinite='skip'"});
  const std::string path = run.path() + "/checkpoints/step-00000004";
  const auto next = checkpoint::ReadNextStep(path);
  ASSERT_TRUE(next);
  {
    const checkpoint::Checkpoint from(path);
    checkpoint::NamedTensors model, optimizer;
    for (const auto& [name, tensor] : from.model()) model[name] = from.ReadModel(tensor.spec).clone();
    for (const auto& [name, tensor] : from.optimizer()) optimizer[name] = from.ReadOptimizer(tensor.spec).clone();
    model.begin()->second.fill_(std::numeric_limits<float>::quiet_NaN());
    checkpoint::SaveCheckpoint(run.path() + "/checkpoints", from.state(), checkpoint::FromMemory(model),
                               checkpoint::FromMemory(optimizer));
  }
  checkpoint::WriteNextStep(path, *next);
  try {
    run.Train({"train.steps=6"});
    ADD_FAILURE() << "trained on";
  } catch (const WorldError& error) {
    EXPECT_NE(std::string(error.what()).find("the first step after loading"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace penstock
