#include "report/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/median.h"
#include "base/units.h"
#include "report/run_files.h"
#include "report/timeline_io.h"
#include "schedule/text.h"

namespace penstock::report {
namespace {

using Json = nlohmann::json;
using schedule::Timeline;

constexpr size_t kMaxRankRows = 8, kMaxKindRows = 6, kMaxStageRows = 8, kMaxWaitRows = 3;
constexpr size_t kSparkCells = 60;

double Sum(const std::vector<AvoidableWait>& waits) {
  return std::accumulate(waits.begin(), waits.end(), 0.0,
                         [](double sum, const AvoidableWait& w) { return sum + w.seconds; });
}

// The indices to show of `n` rows: all, or those with the largest value, in order.
std::vector<size_t> Shown(size_t n, size_t limit, const std::function<double(size_t)>& value) {
  std::vector<size_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  if (n <= limit) return rows;
  std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return value(a) > value(b); });
  rows.resize(limit);
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string ProvenanceOf(const Timeline& t) {
  std::set<std::string_view> names;
  for (const auto& e : t.events) names.insert(Name(e.provenance));
  return fmt::format("{}", fmt::join(names, ", "));
}

class TextReport {
 public:
  explicit TextReport(const RunReport& report) : r_(report) {}

  std::string Run() {
    Line("run       {}", r_.directory);
    if (r_.schedule)
      Line("schedule  {}: {} ranks, {} stages, {} micro-batches, {} actions", r_.schedule->name,
           r_.schedule->num_ranks(), r_.schedule->num_stages(), r_.schedule->num_micro_batches(),
           r_.schedule->num_actions());
    if (r_.loss) Loss(*r_.loss);
    const bool measured = r_.measured_times.has_value();
    const auto& times = measured ? r_.measured_times : r_.predicted_times;
    if (times) {
      Times(*times, measured ? *r_.measured : *r_.predicted);
    } else {
      Line("");
      if (r_.predicted_step_seconds > 0 && r_.loss)
        Line("predicted {} a step, measured {} (median): the prediction is {:.1f} % {}",
             FormatSeconds(r_.predicted_step_seconds), FormatSeconds(r_.loss->seconds_per_step),
             100 * std::abs(r_.predicted_step_seconds / r_.loss->seconds_per_step - 1),
             r_.predicted_step_seconds < r_.loss->seconds_per_step ? "too short" : "too long");
      Line("no timeline in this run ({} is missing)", kMeasuredTimelineFile);
    }
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Loss(const LossSummary& s) {
    Line("loss      first {:.4f} (step {})   last {:.4f} (step {})   lowest {:.4f} (step {})", s.first.loss,
         s.first.step, s.last.loss, s.last.step, s.lowest.loss, s.lowest.step);
    std::vector<double> losses;
    for (const StepMetrics& m : r_.steps) losses.push_back(m.loss);
    if (losses.size() > 2) Line("          {}", Sparkline(losses, kSparkCells));
    Line("speed     {} tokens/s, {} a step (median)   {} tokens in {}{}", FormatCount(s.tokens_per_second),
         FormatSeconds(s.seconds_per_step), FormatCount(static_cast<double>(s.tokens)), FormatSeconds(s.seconds),
         s.skipped_updates > 0 ? fmt::format("   {} updates skipped", s.skipped_updates) : "");
    if (!s.last.peak_bytes.empty()) {
      std::vector<int64_t> peak;
      for (const StepMetrics& m : r_.steps) {
        if (m.step <= r_.planned_from && s.last.step > r_.planned_from) continue;
        peak.resize(std::max(peak.size(), m.peak_bytes.size()));
        for (size_t i = 0; i < m.peak_bytes.size(); ++i) peak[i] = std::max(peak[i], m.peak_bytes[i]);
      }
      std::vector<std::string> shown;
      const std::vector<int64_t>& predicted = r_.predicted_peak_bytes;
      for (size_t i = 0; i < peak.size() && i <= kMaxRankRows; ++i)
        shown.push_back(
            i == kMaxRankRows ? "..."
            : i < predicted.size() && peak[i] > 0
                ? fmt::format("{} (predicted {:+.0f} %)", FormatBytes(peak[i]),
                              100.0 * static_cast<double>(predicted[i] - peak[i]) / static_cast<double>(peak[i]))
                : FormatBytes(peak[i]));
      Line("memory    peak per rank: {}", fmt::join(shown, ", "));
    }
  }

  void Times(const Breakdown& b, const Timeline& timeline) {
    Line("");
    Line("timeline  {} {} of {} ranks, {} in all ({})   bubble {:.1f} %", b.steps, b.steps == 1 ? "step" : "steps",
         b.ranks.size(), FormatSeconds(b.makespan), ProvenanceOf(timeline), 100 * b.bubble_fraction);
    if (r_.gap)
      Line(
          "          step {}: predicted {}, measured {}: the prediction is {:.1f} % {}; predicted bubble {:.1f} % ({})",
          r_.gap->step + 1, FormatSeconds(r_.gap->predicted_step), FormatSeconds(r_.gap->measured_step),
          100 * std::abs(r_.gap->relative_error()), r_.gap->relative_error() < 0 ? "too short" : "too long",
          100 * r_.predicted_times->bubble_fraction, ProvenanceOf(*r_.predicted));
    if (r_.gap) out_ += r_.gap->WhyText();
    Ranks(b);
    Stages(b);
    Kinds(b);
    Waits(timeline);
  }

  void Ranks(const Breakdown& b) {
    Line("");
    Line("rank   busy               wait               other              {}",
         b.memory.empty() ? "" : "most kept between actions");
    const auto rows = Shown(b.ranks.size(), kMaxRankRows, [&](size_t r) { return b.ranks[r].wait + b.ranks[r].other; });
    for (const size_t r : rows) {
      const RankTimes& t = b.ranks[r];
      const auto cell = [&](double seconds) {
        return fmt::format("{:>9} {:5.1f} %", FormatSeconds(seconds), t.total() > 0 ? 100 * seconds / t.total() : 0.0);
      };
      std::string line = fmt::format("{:>4}  {}  {}  {}", r, cell(t.busy), cell(t.wait), cell(t.other));
      if (!b.memory.empty()) line += "  " + Memory(b.memory[r]);
      Line("{}", line);
    }
    if (rows.size() < b.ranks.size()) Line("      and {} ranks with smaller bubbles", b.ranks.size() - rows.size());
  }

  static std::string Memory(const PeakMemory& m) {
    std::vector<std::pair<int64_t, int>> classes;
    for (int c = 0; c < kBufferClassCount; ++c)
      if (m.by_class[c] > 0) classes.push_back({m.by_class[c], c});
    std::sort(classes.rbegin(), classes.rend());
    std::string text = fmt::format("{:>10} (", FormatBytes(m.bytes));
    for (size_t i = 0; i < std::min<size_t>(3, classes.size()); ++i)
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kBufferClassNames[classes[i].second],
                          FormatBytes(classes[i].first));
    return text + (classes.size() > 3 ? ", ...)" : ")");
  }

  void Stages(const Breakdown& b) {
    if (b.stages.empty()) return;
    struct Column {
      std::string_view name;
      double StageTimes::*time;
    };
    std::vector<Column> columns;
    for (const Column& c : {Column{"forward", &StageTimes::forward},
                            {"recompute", &StageTimes::recompute},
                            {"backward", &StageTimes::backward},
                            {"b. input", &StageTimes::backward_input},
                            {"b. weight", &StageTimes::backward_weight}})
      if (std::any_of(b.stages.begin(), b.stages.end(), [&](const StageTimes& t) { return t.*c.time > 0; }))
        columns.push_back(c);
    Line("");
    std::string head = "stage (mean)";
    for (const Column& c : columns) head += fmt::format("  {:>10}", c.name);
    Line("{}", head);
    const auto rows = Shown(b.stages.size(), kMaxStageRows, [&](size_t s) {
      return std::accumulate(columns.begin(), columns.end(), 0.0,
                             [&](double sum, const Column& c) { return sum + b.stages[s].*c.time; });
    });
    for (const size_t s : rows) {
      std::string line = fmt::format("{:>12}", s);
      for (const Column& c : columns) line += fmt::format("  {:>10}", FormatSeconds(b.stages[s].*c.time));
      Line("{}", line);
    }
    if (rows.size() < b.stages.size()) Line("             and {} shorter stages", b.stages.size() - rows.size());
  }

  void Kinds(const Breakdown& b) {
    Line("");
    Line("{:<28}{:>8}{:>12}{:>12}", "action", "count", "time", "bytes");
    for (size_t i = 0; i < std::min(b.kinds.size(), kMaxKindRows); ++i) {
      const KindTimes& k = b.kinds[i];
      Line("{:<28}{:>8}{:>12}{:>12}", k.name, k.count, FormatSeconds(k.seconds),
           k.bytes > 0 ? FormatBytes(k.bytes) : "");
    }
    if (b.kinds.size() > kMaxKindRows) Line("and {} kinds that took less", b.kinds.size() - kMaxKindRows);
  }

  void Waits(const Timeline& timeline) {
    if (!r_.measured) return;
    const double all = Sum(r_.avoidable);
    const double total = r_.measured_times->makespan * static_cast<double>(r_.measured_times->ranks.size());
    Line("");
    Line("avoidable wait: {} in {} actions, {:.2f} % of the ranks' time", FormatSeconds(all), r_.avoidable.size(),
         total > 0 ? 100 * all / total : 0.0);
    for (size_t i = 0; i < std::min(r_.avoidable.size(), kMaxWaitRows); ++i) {
      const auto& e = timeline.events[r_.avoidable[i].event];
      Line("  {:>9}  {} on rank {}, step {}", FormatSeconds(r_.avoidable[i].seconds), ToString(e.action.key), e.rank,
           e.step + 1);
    }
  }

  const RunReport& r_;
  std::string out_;
};

Json ToJson(const StepMetrics& m) { return Json::parse(PrintMetrics(m)); }

Json ToJson(const Breakdown& b, const Timeline& timeline) {
  Json j = {{"steps", b.steps},
            {"makespan", b.makespan},
            {"bubble_fraction", b.bubble_fraction},
            {"provenance", ProvenanceOf(timeline)}};
  j["ranks"] = Json::array();
  for (size_t r = 0; r < b.ranks.size(); ++r) {
    Json rank = {{"busy", b.ranks[r].busy}, {"wait", b.ranks[r].wait}, {"other", b.ranks[r].other}};
    if (!b.memory.empty()) {
      rank["peak_bytes"] = b.memory[r].bytes;
      for (int c = 0; c < kBufferClassCount; ++c)
        if (b.memory[r].by_class[c] > 0)
          rank["peak_by_class"][std::string(kBufferClassNames[c])] = b.memory[r].by_class[c];
    }
    j["ranks"].push_back(std::move(rank));
  }
  j["kinds"] = Json::array();
  for (const KindTimes& k : b.kinds)
    j["kinds"].push_back({{"name", k.name}, {"count", k.count}, {"seconds", k.seconds}, {"bytes", k.bytes}});
  j["stages"] = Json::array();
  for (const StageTimes& s : b.stages)
    j["stages"].push_back({{"forward", s.forward},
                           {"recompute", s.recompute},
                           {"backward", s.backward},
                           {"backward_input", s.backward_input},
                           {"backward_weight", s.backward_weight}});
  return j;
}

}  // namespace

LossSummary Summarise(const std::vector<StepMetrics>& steps) {
  PENSTOCK_CHECK(!steps.empty());
  LossSummary s;
  s.first = steps.front();
  s.last = s.lowest = steps.back();
  std::vector<double> rates, seconds;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepMetrics& m = steps[i];
    if (std::isfinite(m.loss) && !(s.lowest.loss <= m.loss)) s.lowest = m;
    s.skipped_updates += m.applied ? 0 : 1;
    s.tokens += m.tokens;
    s.seconds += m.seconds;
    if (i == 0 && steps.size() > 1) continue;
    rates.push_back(m.tokens_per_second);
    seconds.push_back(m.seconds);
  }
  s.tokens_per_second = Median(std::move(rates));
  s.seconds_per_step = Median(std::move(seconds));
  return s;
}

std::string Sparkline(const std::vector<double>& values, size_t cells) {
  static constexpr std::array<std::string_view, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (values.empty()) return "";
  const size_t n = std::min(cells, values.size());
  std::vector<double> means(n);
  for (size_t c = 0; c < n; ++c) {
    const size_t from = c * values.size() / n, to = (c + 1) * values.size() / n;
    means[c] = std::accumulate(values.begin() + from, values.begin() + to, 0.0) / static_cast<double>(to - from);
  }
  double low = INFINITY, high = -INFINITY;
  for (const double m : means) {
    if (!std::isfinite(m)) continue;
    low = std::min(low, m);
    high = std::max(high, m);
  }
  std::string line;
  for (const double m : means) {
    if (!std::isfinite(m)) {
      line += "!";
      continue;
    }
    const double share = high > low ? (m - low) / (high - low) : 0;
    line += kLevels[std::min<size_t>(kLevels.size() - 1, static_cast<size_t>(share * kLevels.size()))];
  }
  return line;
}

std::string RunReport::ToText() const { return TextReport(*this).Run(); }

std::string RunReport::ToJson() const {
  Json j = {{"directory", directory}};
  if (schedule)
    j["schedule"] = {{"name", schedule->name},
                     {"ranks", schedule->num_ranks()},
                     {"stages", schedule->num_stages()},
                     {"micro_batches", schedule->num_micro_batches()},
                     {"actions", schedule->num_actions()}};
  if (loss) {
    j["loss"] = {{"first", report::ToJson(loss->first)},
                 {"last", report::ToJson(loss->last)},
                 {"lowest", report::ToJson(loss->lowest)}};
    j["skipped_updates"] = loss->skipped_updates;
    j["steps"] = steps.size();
    j["tokens"] = loss->tokens;
    j["seconds"] = loss->seconds;
    j["tokens_per_second"] = loss->tokens_per_second;
    j["seconds_per_step"] = loss->seconds_per_step;
  }
  if (predicted) j["predicted"] = report::ToJson(*predicted_times, *predicted);
  if (measured) {
    j["measured"] = report::ToJson(*measured_times, *measured);
    j["avoidable_wait"] = {{"seconds", Sum(avoidable)}, {"actions", avoidable.size()}, {"longest", Json::array()}};
    for (size_t i = 0; i < std::min<size_t>(10, avoidable.size()); ++i) {
      const auto& e = measured->events[avoidable[i].event];
      j["avoidable_wait"]["longest"].push_back({{"seconds", avoidable[i].seconds},
                                                {"action", ToString(e.action.key)},
                                                {"rank", e.rank},
                                                {"step", e.step + 1}});
    }
  }
  if (predicted_step_seconds > 0) j["predicted_step_seconds"] = predicted_step_seconds;
  if (gap) j["gap"] = Json::parse(gap->ToJson());
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

RunReport ReadRun(const std::string& directory, FileSystem& files) {
  const auto path = [&](std::string_view name) { return directory + "/" + std::string(name); };
  RunReport r;
  r.directory = directory;
  const bool metrics = files.Exists(path(kMetricsFile));
  const bool measured = files.Exists(path(kMeasuredTimelineFile));
  const bool predicted = files.Exists(path(kPredictedTimelineFile));
  if (!metrics && !measured && !predicted)
    throw UserError(
        "'{}' is not the directory of a run: it has none of {}, {} and {}; give the 'run.dir' of the run's "
        "configuration",
        directory, kMetricsFile, kMeasuredTimelineFile, kPredictedTimelineFile);
  r.steps = ReadMetrics(path(kMetricsFile), files);
  if (!r.steps.empty()) r.loss = Summarise(r.steps);
  if (files.Exists(path(kPlanFile))) {
    const Json plan = Json::parse(ReadFile(path(kPlanFile), files), nullptr, /*allow_exceptions=*/false);
    const Json peaks = plan.is_object() ? plan.value("predicted_peak_bytes", Json()) : Json();
    if (!peaks.is_array() ||
        !std::all_of(peaks.begin(), peaks.end(), [](const Json& p) { return p.is_number_integer(); }))
      throw UserError("'{}' is damaged: it is not what train writes; remove it", path(kPlanFile));
    r.predicted_peak_bytes = peaks.get<std::vector<int64_t>>();
    const Json step = plan.value("predicted_step_seconds", Json(0));
    if (step.is_number() && step.get<double>() > 0) r.predicted_step_seconds = step.get<double>();
    const Json first = plan.value("first_step", Json(0));
    if (first.is_number_integer()) r.planned_from = first.get<int64_t>();
  }
  if (files.Exists(path(kScheduleFile)))
    r.schedule = schedule::ParseSchedule(ReadFile(path(kScheduleFile), files), path(kScheduleFile));
  if (measured) {
    r.measured = LoadTimeline(path(kMeasuredTimelineFile), files);
    r.measured_times = Analyse(*r.measured);
    const int stages = static_cast<int>(r.measured_times->stages.size());
    r.avoidable = AvoidableWaits(*r.measured, r.schedule ? r.schedule->graph : schedule::StageGraph::Chain(stages));
  }
  if (predicted) {
    r.predicted = LoadTimeline(path(kPredictedTimelineFile), files);
    r.predicted_times = Analyse(*r.predicted);
  }
  if (measured && predicted)
    r.gap =
        CompareTimelines(*r.predicted, *r.measured,
                         r.schedule ? r.schedule->graph
                                    : schedule::StageGraph::Chain(static_cast<int>(r.measured_times->stages.size())));
  return r;
}

}  // namespace penstock::report
