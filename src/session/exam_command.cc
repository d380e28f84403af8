#include "session/exam_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/median.h"
#include "session/exam.h"

namespace penstock::session {
namespace {

using Json = nlohmann::ordered_json;

// Measured memory that is above the predicted, or much below it, is a fault of the prediction.
constexpr double kLeastMemoryRatio = 0.95;
// What own runs are held to: times on average within this, or within twice what repeated runs differ by where that is
// more; each within the worst; pairs in order.
constexpr double kOwnAverage = 0.07, kOwnSpreads = 2, kOwnWorst = 0.15, kOwnPairs = 0.95;

struct Bound {
  double average = 0, worst = 0;  // shares
};

Bound ParseBound(const std::string& text) {
  Bound bound;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lf,%lf%c", &bound.average, &bound.worst, &rest) != 2 || !(bound.average >= 0) ||
      !(bound.worst >= 0) || std::isinf(bound.average) || std::isinf(bound.worst))
    throw UserError("--bound: '{}' is no AVERAGE,WORST in percent such as '6,10'", text);
  return {bound.average / 100, bound.worst / 100};
}

struct Part {
  std::string name;
  ErrorSummary summary;
};

// Is it held to --bound?
bool IsHeld(const Exam& exam, const ExamPoint& p) { return p.tier == 1 && !p.fitted && exam.group(p.group).bounded; }

// Tier 1 points of the groups that `takes` accepts.
std::vector<ExamResult> Select(const std::vector<ExamResult>& results,
                               const std::function<bool(const ExamPoint&)>& takes) {
  std::vector<ExamResult> some;
  for (const ExamResult& result : results)
    if (takes(*result.point)) some.push_back(result);
  return some;
}

std::vector<Part> Parts(const Exam& exam, const std::vector<ExamResult>& results) {
  std::vector<Part> parts;
  const auto add = [&](std::string name, const std::function<bool(const ExamPoint&)>& takes) {
    const ErrorSummary summary = Summarise(Select(results, takes));
    if (summary.points > 0) parts.push_back({std::move(name), summary});
  };
  for (const ExamGroup& group : exam.groups) {
    add(group.name, [&](const ExamPoint& p) { return p.tier == 1 && p.group == group.name; });
    add(group.name + ", tier 2", [&](const ExamPoint& p) { return p.tier != 1 && p.group == group.name; });
  }
  const auto bounded = [&](const ExamPoint& p) { return p.tier == 1 && exam.group(p.group).bounded; };
  add("bounded groups", bounded);
  add("bounded groups, fitted", [&](const ExamPoint& p) { return bounded(p) && p.fitted; });
  add("bounded groups, held out", [&](const ExamPoint& p) { return bounded(p) && !p.fitted; });
  add("all", [&](const ExamPoint&) { return true; });
  return parts;
}

// Times of own runs, of one group.
void JudgeOwn(const ExamGroup& group, const std::vector<ExamResult>& runs, std::vector<std::string>& faults) {
  std::vector<double> spreads;
  for (const ExamResult& run : runs) spreads.push_back(run.point->spread);
  const double average = std::max(kOwnAverage, kOwnSpreads * Median(spreads));
  const ErrorSummary summary = Summarise(runs);
  if (summary.average > average)
    faults.push_back(fmt::format("{} is off by {:.2f} % on average, the bound is {:.2f} %", group.name,
                                 100 * summary.average, 100 * average));
  if (summary.worst > kOwnWorst)
    faults.push_back(fmt::format("{} is off by {:.2f} %, the bound is {:.0f} %", summary.worst_id, 100 * summary.worst,
                                 100 * kOwnWorst));
  const PairOrder order = OrderOfPairs(runs);
  if (static_cast<double>(order.in_order) < kOwnPairs * static_cast<double>(order.pairs))
    faults.push_back(fmt::format("{}: {} of {} pairs are predicted in the wrong order", group.name,
                                 order.pairs - order.in_order, order.pairs));
}

// What is wrong, in words; nothing when all is well.
std::vector<std::string> Judge(const Exam& exam, const std::vector<ExamResult>& results, const Bound& bound) {
  std::vector<std::string> faults;
  const ErrorSummary held = Summarise(Select(results, [&](const ExamPoint& p) { return IsHeld(exam, p); }));
  if (held.average > bound.average)
    faults.push_back(fmt::format("held-out points are off by {:.2f} % on average, the bound is {:.2f} %",
                                 100 * held.average, 100 * bound.average));
  if (held.worst > bound.worst)
    faults.push_back(fmt::format("{} is off by {:.2f} %, the bound is {:.2f} %", held.worst_id, 100 * held.worst,
                                 100 * bound.worst));
  std::vector<ExamResult> own;
  for (const ExamGroup& group : exam.groups) {
    if (!group.own) continue;
    const auto runs = Select(results, [&](const ExamPoint& p) { return p.group == group.name; });
    JudgeOwn(group, runs, faults);
    own.insert(own.end(), runs.begin(), runs.end());
  }
  for (const ExamResult& result : own) {
    const ExamPoint& point = *result.point;
    if (point.peak_bytes.empty() || !result.seconds) continue;
    if (point.peak_bytes.size() != result.peak_bytes.size()) {
      faults.push_back(fmt::format("{} has peaks of {} ranks, and the plan has {}", point.id, point.peak_bytes.size(),
                                   result.peak_bytes.size()));
      continue;
    }
    for (size_t r = 0; r < point.peak_bytes.size(); ++r) {
      const double ratio = static_cast<double>(point.peak_bytes[r]) / static_cast<double>(result.peak_bytes[r]);
      if (ratio < kLeastMemoryRatio || ratio > 1)
        faults.push_back(fmt::format("{}, rank {}: measured memory is {:.3f} of the predicted, not {} to 1", point.id,
                                     r, ratio, kLeastMemoryRatio));
    }
  }
  return faults;
}

std::string ToText(const Exam& exam, const std::vector<ExamResult>& results, bool verbose) {
  std::string text = fmt::format("{:<38} {:>4} {:>9} {:>11} {:>11} {:>8}\n", "point", "tier", "", "measured s",
                                 "predicted s", "error %");
  for (const ExamResult& result : results) {
    const ExamPoint& point = *result.point;
    if (!result.seconds) continue;
    text += fmt::format("{:<38} {:>4} {:>9} {:>11.4g} {:>11.4g} {:>+8.2f}\n", point.id, point.tier,
                        point.fitted ? "fitted" : "held out", point.seconds, *result.seconds, 100 * result.error());
    if (verbose)
      text += fmt::format("    penstock simulate /dev/null --set {}\n    {}\n", fmt::join(point.assignments, " "),
                          point.source);
  }
  std::string reason;
  for (const ExamResult& result : results) {
    if (result.seconds) continue;
    if (result.refused != reason) text += fmt::format("not predicted: {}\n", reason = result.refused);
    text += fmt::format("    {}\n", result.point->id);
  }
  text += fmt::format("\n{:<38} {:>6} {:>11} {:>8}  {}\n", "", "points", "average %", "worst %", "which");
  for (const Part& part : Parts(exam, results))
    text += fmt::format("{:<38} {:>6} {:>11.2f} {:>8.2f}  {}\n", part.name, part.summary.points,
                        100 * part.summary.average, 100 * part.summary.worst, part.summary.worst_id);
  return text;
}

// What else own runs are asked.
std::string OwnText(const Exam& exam, const std::vector<ExamResult>& results) {
  std::string text;
  for (const ExamGroup& group : exam.groups) {
    if (!group.own) continue;
    const auto runs = Select(results, [&](const ExamPoint& p) { return p.group == group.name; });
    const PairOrder order = OrderOfPairs(runs);
    double least = 0, most = 0;
    for (const ExamResult& run : runs)
      for (size_t r = 0; run.seconds && r < std::min(run.point->peak_bytes.size(), run.peak_bytes.size()); ++r) {
        const double ratio = static_cast<double>(run.point->peak_bytes[r]) / static_cast<double>(run.peak_bytes[r]);
        least = least == 0 ? ratio : std::min(least, ratio);
        most = std::max(most, ratio);
      }
    text += fmt::format(
        "{}: {} of {} pairs whose predictions differ by a tenth or more are in order; measured memory is {:.4f} to "
        "{:.4f} of the predicted\n",
        group.name, order.in_order, order.pairs, least, most);
  }
  return text;
}

// What it means that nothing is wrong.
std::string Passed(const Exam& exam, const std::vector<ExamResult>& results, const std::string& bound) {
  const auto any = [&](const std::function<bool(const ExamPoint&)>& takes) {
    return Summarise(Select(results, takes)).points > 0;
  };
  std::string text;
  if (any([&](const ExamPoint& p) { return IsHeld(exam, p); }))
    text += fmt::format("PASS: held-out points of bounded groups are within {} % on average and at worst\n", bound);
  if (any([&](const ExamPoint& p) { return exam.group(p.group).own; }))
    text += "PASS: within the bounds of own runs, which --bound does not change (docs/exam.md)\n";
  if (text.empty()) text = "none of these points is held to a bound (bounded = true, tier 1, not fitted)\n";
  return text;
}

Json ToJson(const Exam& exam, const std::vector<ExamResult>& results, const std::vector<std::string>& faults) {
  Json j;
  j["points"] = Json::array();
  for (const ExamResult& result : results) {
    const ExamPoint& point = *result.point;
    Json p = {{"id", point.id},         {"group", point.group},     {"tier", point.tier},
              {"fitted", point.fitted}, {"seconds", point.seconds}, {"rounding", point.rounding},
              {"source", point.source}};
    if (result.seconds) {
      p["predicted_seconds"] = *result.seconds;
      p["error"] = result.error();
      p["assignments"] = point.assignments;
      if (!point.peak_bytes.empty()) {
        p["peak_bytes"] = point.peak_bytes;
        p["predicted_peak_bytes"] = result.peak_bytes;
      }
    } else {
      p["refused"] = result.refused;
    }
    j["points"].push_back(std::move(p));
  }
  for (const Part& part : Parts(exam, results))
    j["parts"][part.name] = {{"points", part.summary.points},
                             {"average", part.summary.average},
                             {"worst", part.summary.worst},
                             {"worst_id", part.summary.worst_id}};
  j["faults"] = faults;
  j["passed"] = faults.empty();
  return j;
}

}  // namespace

int RunExam(const ExamOptions& options, std::ostream& out) {
  const Bound bound = ParseBound(options.bound);
  const Exam exam = options.file.empty() ? ShippedExam() : ReadExam(options.file);
  std::vector<ExamResult> results;
  for (const ExamPoint& point : exam.points)
    if (point.id.find(options.only) != std::string::npos) results.push_back(Examine(point, options.assignments));
  if (results.empty()) throw UserError("--only: no point has '{}' in its id", options.only);
  if (Summarise(results).points == 0)
    throw UserError("none of the {} points chosen can be predicted, so nothing is examined", results.size());
  const std::vector<std::string> faults = Judge(exam, results, bound);
  if (options.json) {
    out << ToJson(exam, results, faults).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    out << ToText(exam, results, options.verbose);
    for (const std::string& fault : faults) out << "FAIL: " << fault << "\n";
    out << OwnText(exam, results);
    if (faults.empty()) out << Passed(exam, results, options.bound);
  }
  return faults.empty() ? 0 : 1;
}

}  // namespace penstock::session
