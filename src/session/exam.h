// src/session/exam.h
//
// The exam of the cost model: runs whose time is known, and what the model says of the very same plan. A point is a
// list of assignments of the configuration, so that `penstock simulate --set ...` reproduces each (docs/exam.md).
//
// Threads: functions only. Errors: UserError for what is wrong in a file, all faults in one message, a line each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::session {

struct ExamPoint {
  std::string id, group;
  std::vector<std::string> assignments;  // of its group, then its own
  std::string source;                    // its own, or its group's
  std::string unsupported;               // why it cannot be predicted; empty: it can
  double seconds = 0;                    // of a step, as measured
  double rounding = 0;                   // relative half width of what was published
  double spread = 0;                     // of own runs: (slowest - fastest) / median of the runs
  int64_t tier = 1;                      // 1 counts in averages; 2 rests on something inferred and is only shown
  bool fitted = false;                   // constants were fitted on it
  std::vector<int64_t> peak_bytes;       // [rank] measured; of own runs, may be empty
  int64_t line = 0;
};

struct ExamGroup {
  std::string name, summary;
  bool own = false;      // recorded here: order of pairs and memory are looked at too
  bool bounded = false;  // its tier 1 points that were not fitted are held to the bound
};

struct Exam {
  std::vector<ExamGroup> groups;  // in the order of the file
  std::vector<ExamPoint> points;
  const ExamGroup& group(const std::string& name) const;
};

// `folder`: what a point's `profile` is relative to.
Exam ParseExam(std::string_view toml_text, const std::string& source_name, const std::string& folder);
// A file; the ones in the repository when it was built.
Exam ReadExam(const std::string& path);
Exam ShippedExam();

struct ExamResult {
  const ExamPoint* point = nullptr;
  std::optional<double> seconds{};    // predicted; none: see `refused`
  std::string refused{};              // why there is no prediction
  std::vector<int64_t> peak_bytes{};  // [rank] predicted
  double error() const { return *seconds / point->seconds - 1; }
};
// `overrides`: further assignments of every point.
ExamResult Examine(const ExamPoint& point, const std::vector<std::string>& overrides);

struct ErrorSummary {
  int64_t points = 0;
  double average = 0;  // of absolute errors
  double worst = 0;    // the largest absolute error
  std::string worst_id;
};
ErrorSummary Summarise(const std::vector<ExamResult>& results);

// Pairs of one group whose predicted times differ by more than a tenth, and how many of them were measured in that
// order.
struct PairOrder {
  int64_t pairs = 0, in_order = 0;
};
PairOrder OrderOfPairs(const std::vector<ExamResult>& results);

}  // namespace penstock::session
