#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "session/exam.h"
#include "session/prediction.h"

namespace penstock::session {

ExamResult Examine(const ExamPoint& point, const std::vector<std::string>& overrides) {
  ExamResult result;
  result.point = &point;
  if (!point.unsupported.empty()) {
    result.refused = point.unsupported;
    return result;
  }
  try {
    LoadedSettings settings;
    settings.config.LoadText("", point.id);
    for (const std::string& assignment : point.assignments) settings.config.Set(assignment);
    for (const std::string& assignment : overrides) settings.config.Set(assignment);
    settings.config.Finish();
    const Simulated simulated = SimulatePlan(settings);
    result.seconds = simulated.prediction.step_seconds;
    result.peak_bytes = simulated.prediction.memory_bytes;
  } catch (const UserError& e) {
    throw UserError("point '{}' (line {} of its file): {}", point.id, point.line, e.what());
  }
  return result;
}

ErrorSummary Summarise(const std::vector<ExamResult>& results) {
  ErrorSummary summary;
  for (const ExamResult& result : results) {
    if (!result.seconds) continue;
    const double error = std::abs(result.error());
    ++summary.points;
    summary.average += error;
    if (error < summary.worst) continue;
    summary.worst = error;
    summary.worst_id = result.point->id;
  }
  if (summary.points > 0) summary.average /= static_cast<double>(summary.points);
  return summary;
}

PairOrder OrderOfPairs(const std::vector<ExamResult>& results) {
  PairOrder order;
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = i + 1; j < results.size(); ++j) {
      const ExamResult *slow = &results[i], *fast = &results[j];
      if (!slow->seconds || !fast->seconds || slow->point->group != fast->point->group) continue;
      if (*slow->seconds < *fast->seconds) std::swap(slow, fast);
      if (*slow->seconds <= 1.1 * *fast->seconds) continue;
      ++order.pairs;
      if (slow->point->seconds > fast->point->seconds) ++order.in_order;
    }
  }
  return order;
}

}  // namespace penstock::session
