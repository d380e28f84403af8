#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace penstock::report {
namespace {

constexpr double kWorthSaying = 0.01;  // of the step

// Seconds of the path that `takes` accepts.
template <typename Takes>
double OfPath(const std::vector<PathPiece>& path, const Takes& takes) {
  double seconds = 0;
  for (const PathPiece& piece : path)
    if (takes(piece)) seconds += piece.seconds();
  return seconds;
}

std::string MemoryRoom(double share) {
  if (share <= 0) return "";
  return fmt::format("; memory is at {:.1f} % of the limit", 100 * share);
}

}  // namespace

std::vector<Advice> AdviceFor(const schedule::Timeline& step, const std::vector<PathPiece>& path,
                              const Bubbles& bubbles, double memory_share) {
  std::vector<Advice> all;
  if (bubbles.ranks.empty() || bubbles.makespan <= 0) return all;
  const auto add = [&](double seconds, std::string text) {
    if (seconds >= kWorthSaying * bubbles.makespan) all.push_back({std::move(text), seconds});
  };
  const auto of_kind = [&](PathKind kind) { return OfPath(path, [&](const PathPiece& p) { return p.kind == kind; }); };

  const double recompute = OfPath(path, [&](const PathPiece& p) {
    return p.kind == PathKind::work && p.event >= 0 &&
           step.events[p.event].action.key.kind == schedule::Kind::recompute;
  });
  add(recompute, fmt::format("Recomputation takes {} of the critical path: keep the activations of some stages, or of "
                             "all (parallel.recompute){}.",
                             FormatSeconds(recompute), MemoryRoom(memory_share)));

  size_t busiest = 0;
  double busy = 0, edges = 0;
  const auto ranks = static_cast<double>(bubbles.ranks.size());
  for (size_t r = 0; r < bubbles.ranks.size(); ++r) {
    const RankBubbles& rank = bubbles.ranks[r];
    if (rank.busy > bubbles.ranks[busiest].busy) busiest = r;
    busy += rank.busy / ranks;
    edges += (rank.by_cause[static_cast<size_t>(BubbleCause::warm_up)] +
              rank.by_cause[static_cast<size_t>(BubbleCause::drain)]) /
             ranks;
  }
  add(bubbles.ranks[busiest].busy - busy,
      fmt::format("Rank {} computes {}, the mean of all ranks is {}: split the layers more evenly (parallel.stages).",
                  busiest, FormatSeconds(bubbles.ranks[busiest].busy), FormatSeconds(busy)));
  add(edges, fmt::format("Warm-up and drain of the pipeline keep a rank idle for {} in the mean: more and smaller "
                         "micro-batches (train.micro_batch), or a schedule with smaller bubbles (parallel.schedule).",
                         FormatSeconds(edges)));

  const double message = of_kind(PathKind::message), collective = of_kind(PathKind::collective);
  const double copy = of_kind(PathKind::copy), host = of_kind(PathKind::host);
  add(message, fmt::format("Messages between stages take {} of the critical path: fewer stages, or ranks that talk on "
                           "a faster link.",
                           FormatSeconds(message)));
  add(collective, fmt::format("Collectives take {} of the critical path: larger batches between reductions, fewer "
                              "replicas, or a schedule that hides them.",
                              FormatSeconds(collective)));
  add(copy, fmt::format("Copies between memory tiers take {} of the critical path.", FormatSeconds(copy)));
  add(host, fmt::format("The host takes {} of the critical path between actions: larger micro-batches, or fewer ranks "
                        "to a core.",
                        FormatSeconds(host)));
  std::stable_sort(all.begin(), all.end(), [](const Advice& a, const Advice& b) { return a.seconds > b.seconds; });
  return all;
}

}  // namespace penstock::report
