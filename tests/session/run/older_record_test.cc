// Runs recorded before a configuration key existed go on, where the key has its default.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "session/run/prepare.h"
#include "session/run/tiny_run.h"

namespace penstock {
namespace {

// Keys that came after the first release of checkpoints.
constexpr std::array kLater = {"rope_scaling", "rope_factor", "rope_low_frequency", "rope_high_frequency",
                               "rope_original_context"};

std::string WithoutLater(const std::string& record) {
  auto json = nlohmann::ordered_json::parse(record);
  int erased = 0;
  for (const char* key : kLater) erased += static_cast<int>(json.erase(std::string("model.") + key));
  EXPECT_EQ(erased, std::ssize(kLater));
  return json.dump();
}

TEST(OlderRecord, AMissingKeyIsItsDefault) {
  session::LoadedSettings settings;
  const std::string older = WithoutLater(session::ComputationOf(settings));
  EXPECT_EQ(session::FirstDifference(session::ComputationOf(settings), older), "");
  settings.config.Set("model.rope_scaling='linear'");
  EXPECT_NE(session::FirstDifference(session::ComputationOf(settings), older).find("was not known there"),
            std::string::npos);
}

TEST(OlderRecord, ItsRunGoesOn) {
  TinyRun run;
  const std::string path = checkpoint::ResolveCheckpoint(run.path() + "/checkpoints");
  const std::string file = path + "/state.json";
  checkpoint::Manifest manifest = checkpoint::ParseManifest(ReadFile(file), file);
  manifest.state.extra.at("session.computation") = WithoutLater(manifest.state.extra.at("session.computation"));
  std::istringstream lines(manifest.state.config);
  std::string kept;
  int dropped = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("rope_") < 3 && line.find("rope_base") == std::string::npos)  // "# rope_...": without effect
      ++dropped;
    else
      kept += line + "\n";
  }
  EXPECT_EQ(dropped, std::ssize(kLater));
  manifest.state.config = kept;
  WriteFileAtomically(file, checkpoint::FormatManifest(manifest), true);
  run.Train({"train.steps=6"});
  EXPECT_NE(run.log().find("at step 4"), std::string::npos) << run.log();
  EXPECT_EQ(checkpoint::Checkpoint(checkpoint::ResolveCheckpoint(run.path() + "/checkpoints")).state().step, 6);
}

}  // namespace
}  // namespace penstock
