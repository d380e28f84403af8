#include "cost/fsdp_search.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::cost {
namespace {

FsdpSearchResult SearchOnce(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& base,
                            const FsdpGrid& grid, FsdpObjective objective) {
  const std::vector<double> sequences = grid.sequences.empty() ? std::vector{base.sequence} : grid.sequences;
  const std::vector<int64_t> ranks = grid.ranks.empty() ? std::vector{cluster.ranks} : grid.ranks;
  const auto score = [objective](const FsdpEstimate& e) {
    return objective == FsdpObjective::mfu ? e.mfu : e.tokens_per_second;
  };
  FsdpSearchResult best;
  for (const int64_t n : ranks) {
    FsdpCluster on = cluster;
    on.ranks = n;
    if (n < 1 || n % on.group() != 0) continue;
    for (const double sequence : sequences)
      for (const int zero : grid.zero)
        for (const double kept : grid.kept) {
          FsdpChoice choice = base;
          choice.zero = zero;
          choice.kept = kept;
          choice.sequence = sequence;
          choice.tokens = 0;
          const FsdpEstimate e = EstimateFsdp(model, on, choice);
          ++best.evaluated;
          if (!e.fits) continue;
          ++best.feasible;
          if (best.found && score(e) <= score(best.estimate)) continue;
          best.found = true;
          best.choice = choice;
          best.cluster = on;
          best.estimate = e;
        }
  }
  return best;
}

}  // namespace

std::vector<double> FsdpGrid::Twentieths() {
  std::vector<double> values;
  for (int i = 0; i <= 20; ++i) values.push_back(i / 20.0);
  return values;
}

FsdpSearchResult SearchFsdp(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& base,
                            const FsdpGrid& grid, FsdpObjective objective) {
  FsdpSearchResult best = SearchOnce(model, cluster, base, grid, objective);
  if (best.evaluated == 0)
    throw UserError("FSDP search: the grid has no point; give kept shares, ZeRO stages and ranks");
  if (!best.found) return best;
  const auto gain = [&](FsdpBound resource, auto change) {
    FsdpCluster more = best.cluster;
    change(more);
    FsdpGrid same = grid;
    same.ranks = {more.ranks};
    same.sequences = {best.choice.sequence};
    best.gain[static_cast<size_t>(resource)] =
        SearchOnce(model, more, base, same, FsdpObjective::tokens_per_second).estimate.tokens_per_second /
        SearchOnce(model, best.cluster, base, same, FsdpObjective::tokens_per_second).estimate.tokens_per_second;
  };
  gain(FsdpBound::compute, [](FsdpCluster& c) { c.flops_per_second *= 2; });
  gain(FsdpBound::bandwidth, [](FsdpCluster& c) {
    c.bytes_per_second *= 2;
    c.replica_bytes_per_second *= 2;
  });
  gain(FsdpBound::memory, [](FsdpCluster& c) { c.memory_bytes *= 2; });
  gain(FsdpBound::latency, [](FsdpCluster& c) { c.latency_seconds /= 2; });
  best.binding = static_cast<FsdpBound>(std::max_element(best.gain.begin(), best.gain.end()) - best.gain.begin());
  return best;
}

std::string Explain(const FsdpModel& model, const FsdpSearchResult& r) {
  if (!r.found) return fmt::format("none of {} points fits: memory is the limit\n", r.evaluated);
  std::string text = fmt::format("best of {} points ({} fit):\n", r.evaluated, r.feasible) +
                     Explain(model, r.cluster, r.choice, r.estimate) + "twice the";
  for (size_t i = 0; i < r.gain.size(); ++i)
    text += fmt::format("{} {} would give {:.2f}x", i == 0 ? "" : ",",
                        i == 3 ? "speed of every collective's start" : kFsdpBoundNames[i], r.gain[i]);
  return text + fmt::format("; the binding one is {}\n", Name(r.binding));
}

}  // namespace penstock::cost
