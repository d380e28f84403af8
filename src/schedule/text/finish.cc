// src/schedule/text/finish.cc
//
// After the last line: what was left out is derived from the rest of the file.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "schedule/text/parser.h"

namespace penstock::schedule::text {

void Parser::Finish() {
  if (num_ranks_ != kUnset && num_ranks_ != s_.num_ranks())
    Fail("the file ends after {} 'rank' lists, but line {} says {} ranks", s_.num_ranks(), lines_.ranks, num_ranks_);
  if (s_.ranks.empty() && num_ranks_ != 0)
    Fail("there is no 'rank' list in it; after the head write for every rank 'rank N' and its actions, one a line");
  FinishReplicas();
  FinishStages();
  FinishPlacements();
  CheckRoute();
  FinishOptions();
  FinishMessages();
  CheckGroups();
  FinishUnits();
  CheckActions();
}

void Parser::FinishReplicas() {
  Route& route = s_.route;
  if (explicit_replicas_) {
    if (micro_batches_ != kUnset && micro_batches_ != route.num_micro_batches())
      FailAt(lines_.replicas, fmt::format("replicas of {} micro-batches, but line {} says {}",
                                          route.num_micro_batches(), lines_.micro_batches, micro_batches_));
    replicas_ = 1;
    for (const int32_t r : route.replica_of) replicas_ = std::max(replicas_, r + 1);
  } else {
    if (micro_batches_ == kUnset) {
      int32_t last = -1;
      for (const auto& list : s_.ranks)
        for (const Action& a : list) last = std::max(last, a.key.micro_batch);
      micro_batches_ = last + 1;
    }
    route.replica_of = ContiguousReplicas(micro_batches_, replicas_);
  }
  if (lines_.pipeline == kUnset && !s_.ranks.empty()) {
    if (s_.num_ranks() % replicas_ != 0)
      FailAt(lines_.replicas,
             fmt::format("{} ranks are no multiple of {} replicas; write 'pipeline SIZE' when some ranks are in none",
                         s_.num_ranks(), replicas_));
    route.pipeline_size = s_.num_ranks() / replicas_;
  }
  // A stage that was left out is the one of the rank's position.
  for (const ActionRef ref : own_stage_) {
    const int position = ref.rank % route.pipeline_size;
    if (position >= kMaxStages)
      FailAt(action_lines_[ref.rank][ref.index], fmt::format("stage {} is not in 0..{}", position, kMaxStages - 1));
    s_.ranks[ref.rank][ref.index].key.unit.stage = static_cast<uint16_t>(position);
  }
}

void Parser::FinishStages() {
  if (num_stages_ == kUnset) {
    int last = -1;
    for (const auto& list : s_.ranks)
      for (const Action& a : list)
        if (IsComputeKind(a.key.kind)) last = std::max(last, int{a.key.unit.stage});
    num_stages_ = last + 1;
  }
  if (edges_.empty() && !no_edges_) {
    s_.graph = StageGraph::Chain(num_stages_);
    return;
  }
  try {
    s_.graph = StageGraph(num_stages_, std::move(edges_));
  } catch (const UserError& e) {
    FailAt(lines_.edge, e.what());
  }
}

void Parser::FinishPlacements() {
  Route& route = s_.route;
  if (no_placement_ && placements_.empty()) return;
  const int p = route.pipeline_size;
  if (placements_.empty()) {
    if (num_stages_ > 0) route.placements.push_back(PlacementOfActions());
    return;
  }
  for (Placement& placement : placements_) {
    if (!placement.name.empty()) {
      expanded_ += num_stages_;
      if (expanded_ > kMaxExpanded) FailAt(placement.line, "too many placements of too many stages");
      try {
        placement.positions = MakePlacement(placement.name, p, num_stages_);
      } catch (const UserError& e) {
        FailAt(placement.line, e.what());
      }
    }
    if (static_cast<int>(placement.positions.size()) != num_stages_)
      FailAt(placement.line, fmt::format("{} positions for {} stages", placement.positions.size(), num_stages_));
    for (const int position : placement.positions)
      if (position >= p)
        FailAt(placement.line, fmt::format("position {} is not in 0..{} (pipeline {})", position, p - 1, p));
    route.placements.push_back(std::move(placement.positions));
  }
}

std::vector<int> Parser::PlacementOfActions() const {
  std::vector<int> positions(num_stages_, kUnset);
  for (int r = 0; r < s_.num_ranks(); ++r)
    for (const Action& a : s_.ranks[r])
      if (IsComputeKind(a.key.kind) && a.key.unit.stage < num_stages_ && positions[a.key.unit.stage] == kUnset)
        positions[a.key.unit.stage] = r % s_.route.pipeline_size;
  for (int s = 0; s < num_stages_; ++s) {
    if (positions[s] == kUnset)
      FailAt(line_, fmt::format("no rank computes on stage {}; write 'placement' followed by one of {}, or by the "
                                "position of every stage",
                                s, "linear, block, loop, v"));
  }
  return positions;
}

void Parser::FinishOptions() {
  if (lines_.stage_options != kUnset) {
    if (!recompute_.empty()) FailAt(lines_.recompute, "stages with recomputation, but 'stage-options none'");
    return;
  }
  s_.stage_options.resize(num_stages_);
  for (const int s : recompute_) {
    if (s >= num_stages_) FailAt(lines_.recompute, fmt::format("stage {} is not in 0..{}", s, num_stages_ - 1));
    s_.stage_options[s].recompute = true;
  }
  if (lines_.recompute != kUnset) return;
  for (const auto& list : s_.ranks)
    for (const Action& a : list)
      if (a.key.kind == Kind::recompute && a.key.unit.stage < num_stages_)
        s_.stage_options[a.key.unit.stage].recompute = true;
}

void Parser::FinishMessages() {
  for (const ActionRef ref : own_edge_) {
    Key& key = s_.ranks[ref.rank][ref.index].key;
    const auto edge = EdgeOfMessage(s_.graph, key);
    if (!edge)
      FailAt(LineOf(ref),
             "which edge of the stage graph does this message carry? Not exactly one fits its operator and stage; "
             "say 'part=EDGE'");
    key.part = static_cast<int16_t>(*edge);
  }
  const auto& edges = s_.graph.edges();
  for (const ActionRef ref : own_peer_) {
    Action& a = s_.ranks[ref.rank][ref.index];
    const Key& key = a.key;
    const bool send = key.kind == Kind::send;
    if (key.part < 0 || key.part >= static_cast<int>(edges.size()) || key.micro_batch < 0 ||
        key.micro_batch >= s_.num_micro_batches() || s_.route.placements.empty())
      FailAt(LineOf(ref),
             fmt::format("the other side of this message does not follow from its edge and micro-batch; say '{}RANK'",
                         send ? "->" : "<-"));
    const StageEdge& edge = edges[key.part];
    const int here = key.unit.stage == edge.from ? edge.from : edge.to;
    const int there = here == edge.from ? edge.to : edge.from;
    a.peer_or_group = s_.route.rank_of(send ? there : here, key.micro_batch);
  }
}

void Parser::FinishUnits() {
  if (lines_.unit == kUnset) {
    if (num_stages_ + shared_.size() > static_cast<size_t>(kMaxStages))
      FailAt(lines_.shared, fmt::format("more than {} parameter units", kMaxStages));
    for (const auto& list : shared_)
      for (const uint16_t s : list)
        if (s >= num_stages_) FailAt(lines_.shared, fmt::format("stage {} is not in 0..{}", s, num_stages_ - 1));
    try {
      s_.holders = DefaultHolders(s_, shared_, groups_);
    } catch (const UserError& e) {
      FailAt(line_, e.what());
    }
    return;
  }
  if (lines_.shared != kUnset)
    FailAt(lines_.shared, "'shared' and 'unit' lines exclude each other; a unit with several use= is shared");
  for (size_t u = 0; u < s_.holders.units.size(); ++u)
    for (const ParameterUse& use : s_.holders.units[u].uses)
      if (use.stage >= num_stages_)
        FailAt(unit_lines_[u], fmt::format("stage {} is not in 0..{}", use.stage, num_stages_ - 1));
}

}  // namespace penstock::schedule::text
