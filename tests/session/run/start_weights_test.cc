// checkpoint.weights: comparisons start from them too, and what they must fit.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
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

}  // namespace
}  // namespace penstock
