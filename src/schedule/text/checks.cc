// src/schedule/text/checks.cc
//
// After the last line: whether what the indices of the file name exists.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/text/parser.h"

namespace penstock::schedule::text {

void Parser::CheckRoute() const {
  const Route& route = s_.route;
  const int m = route.num_micro_batches();
  if (!route.placement_of.empty() && static_cast<int>(route.placement_of.size()) != m)
    FailAt(lines_.placement_of,
           fmt::format("placements of {} micro-batches, but there are {}", route.placement_of.size(), m));
  for (const int placement : route.placement_of)
    if (placement >= static_cast<int>(route.placements.size()))
      FailAt(lines_.placement_of, fmt::format("placement {} of {}", placement, route.placements.size()));
  if (int64_t{replicas_} * route.pipeline_size > std::max(1, s_.num_ranks()))
    FailAt(line_, fmt::format("{} replicas of a pipeline of {} are more than {} ranks", replicas_, route.pipeline_size,
                              s_.num_ranks()));
  for (const auto& [at, rank] : route.overrides) {
    if (at.first >= num_stages_ || at.second >= m || rank >= s_.num_ranks() || route.placements.empty())
      FailAt(lines_.override_line,
             fmt::format("override {}.{} -> {}: there are {} stages, {} micro-batches and {} ranks", at.first,
                         at.second, rank, num_stages_, m, s_.num_ranks()));
  }
}

void Parser::CheckGroups() const {
  for (size_t g = 0; g < s_.groups.size(); ++g)
    if (!s_.groups[g].empty() && s_.groups[g].back() >= s_.num_ranks())
      FailAt(group_lines_[g],
             fmt::format("rank {} of a group is not in 0..{}", s_.groups[g].back(), s_.num_ranks() - 1));
}

void Parser::CheckActions() const {
  const int m = s_.num_micro_batches();
  const int units = std::max(num_stages_, static_cast<int>(s_.holders.units.size()));
  for (int r = 0; r < s_.num_ranks(); ++r) {
    for (size_t i = 0; i < s_.ranks[r].size(); ++i) {
      const Action& a = s_.ranks[r][i];
      const auto fail = [&](const std::string& message) { FailAt(action_lines_[r][i], message); };
      const bool message = IsMessage(a.key.kind);
      const int stage = a.key.unit.stage;
      const bool staged = IsComputeKind(a.key.kind) || message;
      const int end = staged ? num_stages_ : units;
      if (stage >= end && !(a.key.kind == Kind::check && stage == 0))
        fail(fmt::format("{} {} is not in 0..{}", staged ? "stage" : "unit", stage, end - 1));
      if (a.key.micro_batch >= m) fail(fmt::format("micro-batch {} is not in 0..{}", a.key.micro_batch, m - 1));
      if (a.key.kind != Kind::collective && a.peer_or_group >= s_.num_ranks())
        fail(fmt::format("rank {} is not in 0..{}", a.peer_or_group, s_.num_ranks() - 1));
      if (message && (a.key.part < 0 || a.key.part >= static_cast<int>(s_.graph.edges().size())))
        fail(fmt::format("part {} of a message is its edge of the stage graph, and there are {} edges", a.key.part,
                         s_.graph.edges().size()));
      for (uint32_t e = 0; e < a.extra_edges.count; ++e)
        CheckEdge(s_.edges[a.extra_edges.first + e], action_lines_[r][i]);
    }
  }
  for (const ActionRef e : s_.edges) CheckEdge(e, lines_.edge_table);
}

void Parser::CheckEdge(ActionRef e, int line) const {
  if (e.rank >= s_.num_ranks() || e.index >= static_cast<int64_t>(s_.ranks[e.rank].size()))
    FailAt(line, fmt::format("there is no action {}:{} (RANK:INDEX, both from 0)", e.rank, e.index));
}

}  // namespace penstock::schedule::text
