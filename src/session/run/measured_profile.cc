#include "session/run/measured_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

#include "base/median.h"
#include "cost/plan_costs.h"
#include "schedule/operators.h"

namespace penstock::session {

using runtime::LayerSample;
using schedule::Event;
using schedule::Kind;

namespace {

// Times of an action add up along a step, so the mean is what predicts the step: medians of times with a long tail add
// up to too little. What takes more than this many medians is an accident of the machine.
constexpr double kAccident = 3;

double Typical(std::vector<double>& seconds) {
  const double limit = kAccident * Median(seconds);
  double sum = 0;
  int count = 0;
  for (const double s : seconds)
    if (s <= limit) sum += s, ++count;
  return sum / count;  // at least the median and what is below it
}

// Samples by (subject, size).
class Collector {
 public:
  void Add(const std::string& subject, double size, double seconds) {
    if (size > 0 && seconds >= 0) samples_[{subject, size}].push_back(seconds);
  }
  void Into(schedule::Profile& profile, int ranks_at_once) {
    for (auto& [key, seconds] : samples_)
      profile.Add(key.first, {key.second, Typical(seconds), static_cast<int64_t>(seconds.size()), ranks_at_once});
  }

 private:
  std::map<std::pair<std::string, double>, std::vector<double>> samples_;
};

}  // namespace

schedule::Profile MeasuredProfile(const runtime::Job& job, const Plan& plan, const runtime::TrainOutcome& outcome,
                                  const std::vector<double>& step_seconds, int threads) {
  schedule::Profile profile;
  const unsigned cores = std::thread::hardware_concurrency();
  profile.machine = fmt::format("{} cores", cores);
  const std::string precision = cost::PrecisionSubject(model::PrecisionName(job.precision), threads);
  const int at_once = cost::RanksAtOnce(plan.schedule.num_ranks(), cores, threads);
  Collector collect;

  // Layers. A whole backward is priced as its halves: by the flops of the layer.
  std::vector<std::string> subjects;
  for (size_t l = 0; l < job.spec.layers.size(); ++l)
    subjects.push_back(cost::LayerSubject(job.spec, static_cast<int>(l)));
  for (const auto& rank : outcome.layer_samples) {
    for (const LayerSample& sample : rank) {
      const std::string_view kind = schedule::Name(sample.kind);
      if (sample.layer < 0) {
        collect.Add(fmt::format("action:{}", kind), 1, sample.seconds);
        continue;
      }
      collect.Add(fmt::format("layer:{}:{}:{}:{}", subjects[sample.layer], kind, precision, plan.length),
                  static_cast<double>(sample.samples), sample.seconds);
    }
  }

  // Operators and updates.
  for (const Event& event : outcome.timeline.events) {
    const schedule::Key& key = event.action.key;
    const double work = event.end - event.start - event.waited;
    const auto elements = [&] { return static_cast<double>(job.units[key.unit.stage].numel); };
    if (key.kind == Kind::update) {
      collect.Add(fmt::format("update:{}:{}", job.optimizer.name, precision), elements(), work);
    } else if (key.kind == Kind::task && schedule::OpName(key.op) == schedule::ops::kNorm) {
      collect.Add(fmt::format("norm:{}", precision), elements(), work);
    } else if (key.kind == Kind::send) {
      collect.Add("action:send", 1, work);
    }
  }
  collect.Into(profile, at_once);

  // What a step takes beside its list: from the recorded steps' whole time and the length of their timelines.
  std::map<int32_t, std::pair<double, double>> spans;
  for (const Event& event : outcome.timeline.events) {
    const auto [it, is_new] = spans.try_emplace(event.step, event.start, event.end);
    it->second.first = std::min(it->second.first, event.start);
    it->second.second = std::max(it->second.second, event.end);
  }
  Collector steps;
  size_t i = 0;
  for (const auto& [step, span] : spans) {
    if (i >= step_seconds.size()) break;
    steps.Add("step", 1, std::max(0.0, step_seconds[i++] - (span.second - span.first)));
  }
  steps.Into(profile, at_once);
  return profile;
}

}  // namespace penstock::session
