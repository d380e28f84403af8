// src/schedule/stage_graph.h
//
// Which stage feeds which. Data, by default a chain; never `stage - 1`. An edge carries one boundary: the named
// tensors that cross from a stage to the next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/action.h"

namespace penstock::schedule {

struct StageEdge {
  uint16_t from = 0;
  uint16_t to = 0;
  std::string boundary = "hidden";
  friend bool operator==(const StageEdge&, const StageEdge&) = default;
};

class StageGraph {
 public:
  StageGraph() = default;
  // UserError when an edge names a missing stage, goes from a stage to itself, or the graph has a cycle.
  StageGraph(int num_stages, std::vector<StageEdge> edges);
  static StageGraph Chain(int num_stages);

  int num_stages() const { return num_stages_; }
  const std::vector<StageEdge>& edges() const { return edges_; }
  // Indices of edges, ascending.
  const std::vector<int>& inputs(int stage) const { return inputs_[stage]; }
  const std::vector<int>& outputs(int stage) const { return outputs_[stage]; }
  // Stages that feed nothing: those that compute a loss.
  bool is_last(int stage) const { return outputs_[stage].empty(); }
  bool is_chain() const;
  friend bool operator==(const StageGraph& a, const StageGraph& b) {
    return a.num_stages_ == b.num_stages_ && a.edges_ == b.edges_;
  }

 private:
  int num_stages_ = 0;
  std::vector<StageEdge> edges_;
  std::vector<std::vector<int>> inputs_, outputs_;
};

}  // namespace penstock::schedule
