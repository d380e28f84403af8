// tests/issues/tiny.h
//
// The common tiny setup of the cases: 4 blocks, hidden 32, 4 heads, sequence 16, vocabulary 67 (not divisible on
// purpose), fp64, seed 1, 3 steps, Adam; reference: the same model in a plain loop on one rank.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "session/run/recorded_run.h"
#include "session/settings.h"

namespace penstock::tiny {

inline constexpr int32_t kVocabulary = 67;

inline std::unique_ptr<session::LoadedSettings> Settings(const std::vector<std::string>& assignments = {}) {
  auto settings = std::make_unique<session::LoadedSettings>();
  settings->config.LoadText(R"(
    [train]
    steps = 3
    batch = 8
    micro_batch = 2
    [model]
    layers = 4
    hidden = 32
    heads = 4
    vocabulary = 67
    [data]
    sequence = 16
    [optimizer]
    schedule = "constant"
    [numerics]
    precision = "fp64"
    reproducible = true
    [runtime]
    deadline = 60
  )",
                            "tiny");
  for (const std::string& assignment : assignments) settings->config.Set(assignment);
  settings->config.Finish();
  return settings;
}

// Samples of the given lengths with random tokens.
inline std::shared_ptr<const data::Dataset> Samples(const std::vector<int64_t>& lengths) {
  return std::make_shared<data::ListDataset>(data::ListDataset::Random(lengths, kVocabulary, 7));
}
inline std::shared_ptr<const data::Dataset> EqualSamples(int count = 24) {
  return Samples(std::vector<int64_t>(count, 16));
}

// The run in the layout that `assignments` name.
inline session::RecordedRun RunLayout(const std::vector<std::string>& assignments,
                                      const std::shared_ptr<const data::Dataset>& dataset) {
  const auto settings = Settings(assignments);
  const auto run = session::Prepare(*settings, dataset);
  return session::RecordRun(*settings, *run, "run");
}
inline session::RecordedRun Reference(const std::vector<std::string>& assignments,
                                      const std::shared_ptr<const data::Dataset>& dataset,
                                      session::OracleKind kind = session::OracleKind::plain) {
  const auto settings = Settings(assignments);
  const auto run = session::Prepare(*settings, dataset);
  return session::RecordOracle(*settings, *run, kind);
}
inline session::RunComparison Compare(const session::RecordedRun& a, const session::RecordedRun& b) {
  const auto settings = Settings();
  return session::CompareRuns(session::MakePlan(*settings, true).spec, a, b);
}
inline void ExpectEqualBits(const session::RecordedRun& a, const session::RecordedRun& b) {
  const session::RunComparison c = Compare(a, b);
  EXPECT_EQ(c.verdict, checkpoint::Verdict::equal) << c.first << "\n" << c.tensors.ToString();
  EXPECT_GT(c.tensors.tensors, 0);
}
inline std::vector<std::string> With(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace penstock::tiny
