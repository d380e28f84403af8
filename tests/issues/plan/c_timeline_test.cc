// Public reports about timelines and recomputation (cases.md C9, C10).
#include "issues/plan/simulated.h"

namespace penstock {
namespace {

using simulated::Json;

// p = 4, m = 8 and equal stages: (p - 1) / (m + p - 1) of the time is bubble, within 2 points, although messages, norms
// and updates take their part; and the trace is a file for Chrome and Perfetto with a lane per rank.
TEST(IssueC9, TraceAndBubbleShare) {
  const std::vector<std::string> job = {"parallel.pipeline=4", "train.batch=8",        "model.layers=64",
                                        "model.hidden=256",    "model.vocabulary=256", "parallel.stages='even'"};
  EXPECT_NEAR(Json(job)["bubble_fraction"].get<double>(), 3.0 / 11, 0.02);

  const std::string directory = testing::TempDir() + "/simulated_c9";
  std::string out = directory;
  for (int i = 0; FileSystem::Real().Exists(out); ++i) out = directory + "_" + std::to_string(i);
  simulated::Text(job, /*json=*/false, out);
  const auto trace = nlohmann::json::parse(ReadFile(out + "/trace.json"));
  std::map<int, int64_t> computed;  // by lane
  for (const auto& event : trace["traceEvents"])
    if (event.value("ph", "") == "X" && event.value("name", "").rfind("forward", 0) == 0) ++computed[event["tid"]];
  int64_t forwards = 0;
  for (const auto& [lane, count] : computed) forwards += count;
  EXPECT_EQ(forwards, 4 * 8);
}

// Zero bubble with full recomputation: every forward is run once more, not once per half of the backward, and the step
// is longer than that of interleaved 1F1B, which keeps what it needs. Without recomputation it is the other way round.
TEST(IssueC10, RecomputationIsPricedOnceAndRanked) {
  const auto run = [](const char* schedule, const char* recompute) {
    return Json({"parallel.pipeline=4", "parallel.chunks=2", "train.batch=16", "model.layers=16", "model.hidden=256",
                 std::string("parallel.schedule='") + schedule + "'",
                 std::string("parallel.recompute='") + recompute + "'"});
  };
  const auto zero = run("zb-v", "none"), zero_full = run("zb-v", "full"), interleaved = run("interleaved-1f1b", "none");
  EXPECT_EQ(zero_full["kinds"]["recompute"]["count"], 8 * 16);
  EXPECT_NEAR(zero_full["kinds"]["recompute"]["seconds"].get<double>(),
              zero_full["kinds"]["forward"]["seconds"].get<double>(), 1e-12);
  EXPECT_FALSE(zero["kinds"].contains("recompute"));
  for (const char* half : {"backward_input", "backward_weight", "forward"})
    EXPECT_NEAR(zero["kinds"][half]["seconds"].get<double>(), zero_full["kinds"][half]["seconds"].get<double>(), 1e-12)
        << half;
  const auto seconds = [](const nlohmann::json& j) { return j["step_seconds"].get<double>(); };
  EXPECT_LT(seconds(zero), seconds(interleaved));
  EXPECT_GT(seconds(zero_full), seconds(interleaved));
  // The extra forward of a rank is in the step, whole.
  EXPECT_GE(seconds(zero_full) - seconds(zero), 0.9 * zero_full["kinds"]["recompute"]["seconds"].get<double>() / 4);
}

}  // namespace
}  // namespace penstock
