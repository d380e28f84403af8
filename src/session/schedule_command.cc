#include "session/schedule_command.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "report/svg.h"
#include "schedule/builder.h"
#include "schedule/complete.h"
#include "schedule/costs.h"
#include "schedule/lower.h"
#include "schedule/text.h"

namespace penstock::session {

using schedule::Builder;
using schedule::LowerSpec;
using schedule::Schedule;
using schedule::UniformCosts;
using schedule::VerifyReport;

namespace {

// Half a minute and 3 GB, with verification.
constexpr int64_t kMaxActions = 5'000'000;

// Names of the papers for placements.
std::string PlacementName(const std::string& route) {
  if (route == "contiguous") return "block";
  if (route == "modular") return "loop";
  return route;
}

bool IsFile(const std::string& name) {
  return !Registry<Builder>::Has(name) &&
         (name.find('/') != std::string::npos || FileSystem::Real().Exists(name) || name.ends_with(".schedule"));
}

Schedule FromFile(const ScheduleOptions& options) {
  const auto refuse = [&](bool given, const char* option) {
    if (given) throw UserError("{} has no effect: '{}' is a file, which says so itself", option, options.name);
  };
  refuse(options.ranks.has_value(), "--ranks");
  refuse(options.chunks.has_value(), "--chunks");
  refuse(options.micro_batches.has_value(), "--microbatches");
  refuse(!options.route.empty(), "--route");
  return schedule::ParseSchedule(ReadFile(options.name), options.name);
}

LowerSpec SpecOf(const Builder& builder, const ScheduleOptions& options) {
  if (!options.ranks) throw UserError("schedule '{}' needs --ranks, for example --ranks 4", builder.name);
  if (!options.micro_batches)
    throw UserError("schedule '{}' needs --microbatches, for example --microbatches 8", builder.name);
  LowerSpec spec;
  spec.pipeline = *options.ranks;
  spec.chunks = options.chunks.value_or(builder.default_chunks);
  spec.micro_batches = *options.micro_batches;
  spec.placement = options.route.empty() ? builder.placements.front() : PlacementName(options.route);
  const auto at_least_one = [](const char* option, int value) {
    if (value < 1) throw UserError("{} must be at least 1, not {}", option, value);
  };
  at_least_one("--ranks", spec.pipeline);
  at_least_one("--chunks", spec.chunks);
  at_least_one("--microbatches", spec.micro_batches);
  const auto& known = schedule::PlacementNames();
  if (std::find(known.begin(), known.end(), spec.placement) == known.end())
    throw UserError("--route: there is no placement named '{}'{}", options.route, DidYouMean(options.route, known));
  // In floating point: the product of three large numbers may not fit an integer.
  const double actions = (builder.splits_backward ? 3.0 : 2.0) * spec.pipeline * spec.chunks * spec.micro_batches;
  if (actions > kMaxActions)
    throw UserError("{} ranks with {} chunks and {} micro-batches are {:.3g} actions; at most {} fit", spec.pipeline,
                    spec.chunks, spec.micro_batches, actions, kMaxActions);
  return spec;
}

UniformCosts CostsOf(const ScheduleOptions& options, int chunks, int64_t actions) {
  std::vector<Rational> times;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = options.costs.find(',', begin);
    times.push_back(Rational::Parse(std::string_view(options.costs).substr(begin, end - begin)));
  }
  if (times.size() != 3)
    throw UserError("--costs takes three times, of forward, backward_input and backward_weight, as in 1,1,1; not '{}'",
                    options.costs);
  times.push_back(Rational::Parse(options.hop));
  if (options.per != "rank" && options.per != "chunk") throw UserError("--per is rank or chunk, not '{}'", options.per);

  // All times are multiples of 1 / denominator: refuse what could leave 64 bits on the way to the makespan.
  double denominator = chunks, largest = 0;
  for (const Rational& t : times) {
    if (t < Rational(0)) throw UserError("a time cannot be negative: {}", t.ToString());
    denominator *= static_cast<double>(t.denominator());
    largest = std::max(largest, t.ToDouble());
  }
  if (denominator * std::max(largest, 1.0) * static_cast<double>(actions) > 1e18)
    throw UserError("--costs {} and --hop {} cannot be added up exactly over {} actions; use shorter numbers",
                    options.costs, options.hop, actions);

  UniformCosts costs = options.per == "rank" ? UniformCosts::PerRank(times[0], times[1], times[2], chunks)
                                             : UniformCosts{times[0], times[1], times[2], 0};
  costs.hop = times[3];
  return costs;
}

// Chunks per rank of a schedule from a file.
int ChunksOf(const Schedule& schedule, const std::string& per) {
  const int stages = schedule.num_stages(), positions = std::max(1, schedule.route.pipeline_size);
  if (stages % positions != 0 && per == "rank")
    throw UserError("{} stages on {} pipeline positions have no common share of a rank; use --per chunk", stages,
                    positions);
  return std::max(1, stages / positions);
}

std::string RouteOf(const Schedule& schedule) {
  const auto& placements = schedule.route.placements;
  for (const std::string& name : schedule::PlacementNames()) {
    try {
      const auto position = schedule::MakePlacement(name, schedule.route.pipeline_size, schedule.num_stages());
      if (placements.size() == 1 && placements[0] == position && schedule.route.overrides.empty()) return name;
    } catch (const UserError&) {
      continue;  // sizes that do not fit this placement
    }
  }
  return "custom";
}

// A number a script can use as it is: an integer where it is one.
nlohmann::ordered_json Decimal(const Rational& value) {
  if (value.denominator() == 1) return value.numerator();
  return value.ToDouble();
}

nlohmann::ordered_json ToJson(const ScheduleAnswer& a, const ScheduleOptions& options) {
  nlohmann::ordered_json j;
  j["schedule"] = a.schedule.name;
  j["ranks"] = a.schedule.num_ranks();
  j["chunks"] = a.chunks;
  j["stages"] = a.schedule.num_stages();
  j["microbatches"] = a.schedule.num_micro_batches();
  j["route"] = a.route;
  j["costs"] = options.costs;
  j["per"] = options.per;
  j["hop"] = options.hop;
  j["makespan"] = Decimal(a.replay.makespan);
  j["max_span"] = Decimal(a.replay.max_span);
  j["bubble_fraction"] = Decimal(a.replay.bubble_fraction);
  auto& peaks = j["peak_microbatches"] = nlohmann::ordered_json::array();
  auto exact_peaks = nlohmann::ordered_json::array();
  for (const Rational& peak : a.replay.peak_micro_batches) {
    peaks.push_back(Decimal(peak));
    exact_peaks.push_back(peak.ToString());
  }
  j["actions"] = a.replay.actions;
  j["verified"] = a.verified.ok();
  for (int t = 0; t < schedule::kTransportCount; ++t)
    j["transports"][std::string(Name(static_cast<schedule::Transport>(t)))] = a.verified.transports[t].completes;
  j["exact"] = {{"makespan", a.replay.makespan.ToString()},
                {"max_span", a.replay.max_span.ToString()},
                {"bubble_fraction", a.replay.bubble_fraction.ToString()},
                {"peak_microbatches", exact_peaks}};
  if (options.print) j["order"] = schedule::PrintComputeCompact(a.schedule);
  return j;
}

std::string WithDecimal(const Rational& value) {
  return value.denominator() == 1 ? value.ToString() : fmt::format("{} = {:.6g}", value.ToString(), value.ToDouble());
}

std::string ToText(const ScheduleAnswer& a, const ScheduleOptions& options) {
  std::vector<std::string> peaks;
  for (const Rational& peak : a.replay.peak_micro_batches) peaks.push_back(fmt::format("{:.4g}", peak.ToDouble()));
  std::string text =
      fmt::format("{}: {} ranks, {} stages, {} micro-batches, {} route\n", a.schedule.name, a.schedule.num_ranks(),
                  a.schedule.num_stages(), a.schedule.num_micro_batches(), a.route);
  text += fmt::format("  makespan           {}\n", WithDecimal(a.replay.makespan));
  text += fmt::format("  max_span           {}\n", WithDecimal(a.replay.max_span));
  text += fmt::format("  bubble_fraction    {}\n", WithDecimal(a.replay.bubble_fraction));
  text += fmt::format("  peak_microbatches  {}\n", fmt::join(peaks, " "));
  text += fmt::format("  actions            {}\n", a.replay.actions);
  text += fmt::format("  verified           {} actions of the whole step; completes under", a.verified.actions);
  for (int t = 0; t < schedule::kTransportCount; ++t)
    if (a.verified.transports[t].completes) text += fmt::format(" {}", Name(static_cast<schedule::Transport>(t)));
  text += "\n";
  if (options.print) text += "\n" + schedule::PrintComputeCompact(a.schedule);
  return text;
}

}  // namespace

ScheduleAnswer AnswerSchedule(const ScheduleOptions& options) {
  ScheduleAnswer answer;
  if (IsFile(options.name)) {
    answer.schedule = FromFile(options);
    answer.chunks = ChunksOf(answer.schedule, options.per);
    answer.route = RouteOf(answer.schedule);
  } else {
    const Builder& builder = Registry<Builder>::Find(options.name);
    const LowerSpec spec = SpecOf(builder, options);
    answer.schedule = AssembleCompute(builder, spec);
    answer.chunks = spec.chunks;
    answer.route = spec.placement;  // several names stand for the same route on one position
  }
  const UniformCosts costs = CostsOf(options, answer.chunks, answer.schedule.num_actions());
  answer.verified = schedule::VerifyWritten(answer.schedule);
  if (!answer.verified.ok()) throw UserError("schedule '{}' is faulty\n{}", options.name, answer.verified.ToString());
  answer.replay = simulate::ReplayInOrder<Rational>(answer.schedule, schedule::UniformActionCosts(costs));
  return answer;
}

int RunSchedule(const ScheduleOptions& options, std::ostream& out) {
  const ScheduleAnswer answer = AnswerSchedule(options);
  if (!options.save.empty() && options.save == options.draw)
    throw UserError("--save and --draw name the same file, '{}'", options.save);
  for (const std::string& file : {options.save, options.draw})  // before the first is written
    if (!file.empty() && FileSystem::Real().Exists(file))
      throw UserError("'{}' exists already and is not overwritten; choose another path or remove it", file);
  if (!options.save.empty()) WriteFileAtomically(options.save, schedule::PrintSchedule(answer.schedule));
  if (!options.draw.empty()) {
    const std::string title =
        fmt::format("{}, {} route, costs {} per {}", answer.schedule.name, answer.route, options.costs, options.per);
    const auto timeline = simulate::ToTimeline(answer.schedule, answer.replay, title);
    WriteFileAtomically(options.draw, report::DrawSvg(timeline, {.seconds = false}));
  }
  if (options.json)
    out << ToJson(answer, options).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  else
    out << ToText(answer, options);
  return 0;
}

}  // namespace penstock::session
