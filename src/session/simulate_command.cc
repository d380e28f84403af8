#include "session/simulate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "report/breakdown.h"
#include "schedule/text.h"
#include "session/prediction.h"
#include "session/prediction_files.h"

namespace penstock::session {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxRankRows = 8, kMaxKindRows = 8;

// Ranks to show: all, or the busiest and the idlest and those between, evenly.
std::vector<size_t> Rows(size_t ranks) {
  std::vector<size_t> rows;
  const size_t shown = std::min(ranks, kMaxRankRows);
  for (size_t i = 0; i < shown; ++i) rows.push_back(shown == 1 ? 0 : i * (ranks - 1) / (shown - 1));
  return rows;
}

double Share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string ToText(const Prediction& p, const report::Breakdown& times) {
  std::string text;
  for (const auto& [key, value] : p.facts) text += fmt::format("{:<10} {}\n", key, value);
  for (const std::string& warning : p.warnings) text += "note: " + warning + "\n";
  text +=
      fmt::format("step       {}, bubble {:.1f} %, {} tokens/s, {:.1f} TFLOP/s per device ({:.1f} % of peak)\n",
                  FormatSeconds(p.step_seconds), 100 * p.simulation.bubble_fraction, FormatCount(p.tokens_per_second),
                  p.model_flops / p.step_seconds / static_cast<double>(p.devices) / 1e12, 100 * p.utilisation());
  if (p.price_per_step > 0)
    text += fmt::format("price      {:.4g} {} per step\n", p.price_per_step, p.cluster->devices[0].price_currency);
  text += fmt::format("{:>6} {:>8} {:>8} {:>8} {:>12} {:>12}\n", "rank", "busy", "wait", "other", "memory", "limit");
  for (const size_t r : Rows(times.ranks.size()))
    text += fmt::format("{:>6} {:>6.1f} % {:>6.1f} % {:>6.1f} % {:>12} {:>12}\n", r,
                        Share(times.ranks[r].busy, times.makespan), Share(times.ranks[r].wait, times.makespan),
                        Share(times.ranks[r].other, times.makespan), FormatBytes(p.memory_bytes[r]),
                        p.memory_limits[r] > 0 ? FormatBytes(p.memory_limits[r]) : "-");
  if (times.ranks.size() > kMaxRankRows)
    text += fmt::format("       {} of {} ranks\n", kMaxRankRows, times.ranks.size());
  text += fmt::format("{:<22} {:>10} {:>12} {:>12}\n", "action", "count", "seconds", "bytes");
  for (size_t k = 0; k < std::min(kMaxKindRows, times.kinds.size()); ++k)
    text += fmt::format("{:<22} {:>10} {:>12} {:>12}\n", times.kinds[k].name, times.kinds[k].count,
                        FormatSeconds(times.kinds[k].seconds),
                        times.kinds[k].bytes > 0 ? FormatBytes(times.kinds[k].bytes) : "-");
  return text;
}

Json ToJson(const Prediction& p, const report::Breakdown& times) {
  Json j;
  j["cluster"] = p.cluster->name;
  j["devices"] = p.devices;
  j["copies"] = p.copies;
  j["actions"] = p.simulation.actions;
  j["messages"] = p.simulation.messages;
  j["message_bytes"] = p.simulation.message_bytes;
  j["extrapolated_actions"] = p.simulation.extrapolated;
  j["calibrated"] = p.calibrated;
  j["step_seconds"] = p.step_seconds;
  j["makespan_seconds"] = p.simulation.makespan;
  j["bubble_fraction"] = p.simulation.bubble_fraction;
  j["tokens_per_second"] = p.tokens_per_second;
  j["model_flops_per_step"] = p.model_flops;
  j["utilisation"] = p.utilisation();
  j["price_per_step"] = p.price_per_step;
  j["fits"] = p.fits();
  for (size_t r = 0; r < times.ranks.size(); ++r)
    j["ranks"].push_back({{"busy_seconds", times.ranks[r].busy},
                          {"wait_seconds", times.ranks[r].wait},
                          {"other_seconds", times.ranks[r].other},
                          {"peak_bytes", p.memory_bytes[r]},
                          {"limit_bytes", p.memory_limits[r]}});
  for (const report::KindTimes& kind : times.kinds)
    j["kinds"][kind.name] = {{"count", kind.count}, {"seconds", kind.seconds}, {"bytes", kind.bytes}};
  for (const auto& [key, value] : p.facts) j["facts"][key] = value;
  j["warnings"] = p.warnings;
  return j;
}

}  // namespace

int RunSimulate(const SimulateOptions& options, std::ostream& out) {
  const LoadedSettings settings(options.config, options.assignments);
  RequireNewDirectory(options.out);
  Simulated simulated = SimulatePlan(settings);
  const Plan& plan = *simulated.plan;
  const report::Breakdown times = report::Analyse(simulated.prediction.simulation.timeline);
  if (!options.out.empty()) WritePrediction(options.out, settings, plan, simulated.prediction, settings.path);
  if (options.json) {
    out << ToJson(simulated.prediction, times).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    out << plan.explanation << ToText(simulated.prediction, times);
    if (!options.out.empty()) out << fmt::format("report     {}/report.html\n", options.out);
  }
  return 0;
}

}  // namespace penstock::session
