// The answers a reader looks for, each a number and a sentence.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"
#include "report/html/facts.h"
#include "report/html/markup.h"
#include "report/run_report.h"

namespace penstock::report::html {
namespace {

std::string Card(std::string_view label, const std::string& number, const std::string& sentence, bool bad = false) {
  return fmt::format(
      "<div class=\"card\"><h2 class=\"label\">{}</h2><p class=\"number{}\">{}</p><p class=\"say\">{}</p></div>\n",
      Escape(label), bad ? " bad" : "", Escape(number), Escape(sentence));
}

// Of the run, without its first step when there are more, as the terminal says it.
double MedianStep(const Facts& f) { return Summarise(f.input.metrics).seconds_per_step; }

// The run beside its recorded steps.
std::string MedianOfRun(const Facts& f) {
  if (f.input.metrics.size() < 2) return "";
  return fmt::format(" The median of the run is {}.", FormatSeconds(MedianStep(f)));
}

std::string StepTime(const Facts& f) {
  if (!f.measured && !f.input.metrics.empty()) {
    const double measured = MedianStep(f);
    const double predicted = f.input.predicted_step_seconds > 0 ? f.input.predicted_step_seconds
                             : f.predicted                      ? f.predicted->step_seconds
                                                                : 0;
    return Card("Step time", FormatSeconds(measured),
                predicted > 0 ? fmt::format("Measured, the median of {} steps without a timeline; {} was predicted, "
                                            "which is {} {}.",
                                            f.input.metrics.size(), FormatSeconds(predicted),
                                            Percent(std::abs(predicted / measured - 1)),
                                            predicted < measured ? "too short" : "too long")
                              : "Median of the run; there is no timeline.");
  }
  if (const Side* only = f.main(); only != nullptr && !f.gap)
    return Card("Step time", FormatSeconds(only->step_seconds),
                only == &*f.measured ? "Measured; there is no prediction to compare with."
                                     : "Predicted; nothing was measured.");
  if (f.gap) {
    const double error = f.gap->relative_error();
    return Card("Step time", FormatSeconds(f.gap->measured_step),
                fmt::format("Measured, step {}; {} was predicted, which is {} {}.{}", f.gap->step + 1,
                            FormatSeconds(f.gap->predicted_step), Percent(std::abs(error)),
                            error < 0 ? "too short" : "too long", MedianOfRun(f)));
  }
  return Card("Step time", "not known", "There is no timeline and no metrics.");
}

// What the step consists of: the critical path by kind, over all ranks.
std::string Consists(const Facts& f) {
  const Side* side = f.main();
  if (side == nullptr || side->step_seconds <= 0) return "";
  std::map<std::string, double> by_name;
  for (const PathShare& share : Shares(side->typical, side->path)) by_name[share.name] += share.seconds;
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, seconds] : by_name) parts.emplace_back(seconds, name);
  std::sort(parts.rbegin(), parts.rend());
  if (parts.empty()) return "";
  std::string sentence = "Of the critical path: ";
  for (size_t i = 0; i < std::min<size_t>(4, parts.size()); ++i)
    sentence += fmt::format("{}{} {} ({})", i == 0 ? "" : ", ", parts[i].second, FormatSeconds(parts[i].first),
                            Percent(parts[i].first / side->step_seconds));
  return Card("Where the time goes",
              fmt::format("{} {}", parts[0].second, Percent(parts[0].first / side->step_seconds)), sentence + ".");
}

std::string CauseInWords(BubbleCause cause, int32_t peer) {
  const std::string whom = peer >= 0 ? fmt::format("rank {}", peer) : "another rank";
  switch (cause) {
    case BubbleCause::warm_up:
      return "for its first input (warm-up of the pipeline)";
    case BubbleCause::drain:
      return "after its last layer, for the others to finish (drain of the pipeline)";
    case BubbleCause::imbalance:
      return fmt::format("for {}, which was still computing (imbalance)", whom);
    case BubbleCause::message:
      return fmt::format("for messages of {} that were on their way", whom);
    case BubbleCause::collective:
      return "inside collectives";
    case BubbleCause::offload:
      return "for copies between device and host memory";
    case BubbleCause::host:
      return "for the host, between actions";
  }
  return "";
}

std::string Wait(const Facts& f) {
  const Side* side = f.main();
  if (side == nullptr || side->bubbles.ranks.empty())
    return Card("Longest idle", "not known", "No timeline says who waited.");
  const auto& ranks = side->bubbles.ranks;
  size_t longest = 0;
  for (size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].total() > (1 + 1e-9) * ranks[longest].total()) longest = r;  // not for rounding
  const RankBubbles& rank = ranks[longest];
  if (rank.total() <= 0) return Card("Longest idle", "none", "Every rank computes all the time.");
  const auto most =
      static_cast<size_t>(std::max_element(rank.by_cause.begin(), rank.by_cause.end()) - rank.by_cause.begin());
  const int32_t whom = rank.longest_wait().first;
  return Card("Longest idle", fmt::format("rank {}: {}", longest, FormatSeconds(rank.total())),
              fmt::format("{} of {} step without computation, all waits together; {} of it {}.",
                          Percent(side->step_seconds > 0 ? rank.total() / side->step_seconds : 0),
                          side == &*f.measured ? "its" : "its predicted", FormatSeconds(rank.by_cause[most]),
                          CauseInWords(static_cast<BubbleCause>(most), whom)));
}

std::string Memory(const Facts& f) {
  if (f.tightest < 0) return Card("Memory", "not known", "Neither peaks nor a memory timeline are in this report.");
  const RankPeak& p = f.peaks[f.tightest];
  std::string mostly;
  const auto& classes = p.composition.by_class;
  const auto largest = std::max_element(classes.begin(), classes.end());
  if (*largest > 0)
    mostly = fmt::format(" Most of it: {} ({}).", InWords(kBufferClassNames[largest - classes.begin()]),
                         FormatBytes(*largest));
  const std::string how = p.measured > 0 ? "measured" : "predicted";
  if (p.limit <= 0)
    return Card("Memory", FormatBytes(p.bytes()),
                fmt::format("Highest {} peak, on rank {}; its limit is not known.{}", how, f.tightest, mostly));
  const double share = f.memory_share();
  if (f.input.shared_memory)
    return Card(
        "Memory", fmt::format("{:.1f} % of the limit", 100 * share),
        fmt::format("All ranks together {} of the machine's {}. Rank {} has the most, {} peak {}.{}",
                    FormatBytes(f.all_peaks()), FormatBytes(p.limit), f.tightest, how, FormatBytes(p.bytes()), mostly),
        share > 1);
  return Card("Memory", fmt::format("{:.1f} % of the limit", 100 * share),
              fmt::format("Rank {} is tightest: {} peak {}, {} {}.{}", f.tightest, how, FormatBytes(p.bytes()),
                          share > 1 ? "over the limit of" : "of", FormatBytes(p.limit), mostly),
              share > 1);
}

std::string Parting(const Facts& f) {
  if (f.gap) {
    if (f.gap->reasons.empty())
      return Card("Prediction and measurement", "agree", "No piece of the critical path differs.");
    const GapReason& r = f.gap->reasons[0];
    return Card("Where they part",
                fmt::format("{}{}", f.gap->difference() < 0 ? "-" : "+", FormatSeconds(std::abs(f.gap->difference()))),
                fmt::format("The step is {} than predicted. Largest reason: {}.",
                            f.gap->difference() < 0 ? "shorter" : "longer", r.text));
  }
  const Side* side = f.main();
  if (side == nullptr) return "";
  const auto shares = Shares(side->typical, side->path);
  return Card("Bubble", Percent(side->bubbles.fraction()),
              shares.empty()
                  ? "Share of the ranks' time without computation."
                  : fmt::format("Share of the ranks' time without computation. The critical path is {} {} on rank {}.",
                                Percent(side->step_seconds > 0 ? shares[0].seconds / side->step_seconds : 0),
                                shares[0].name, shares[0].rank));
}

}  // namespace

std::string Headline(const Facts& f) {
  std::string out = "<section class=\"cards\" aria-label=\"Headline numbers\">\n";
  out += StepTime(f) + Consists(f) + Wait(f) + Memory(f) + Parting(f);
  return out + "</section>\n";
}

}  // namespace penstock::report::html
