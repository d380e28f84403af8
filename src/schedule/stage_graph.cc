#include "schedule/stage_graph.h"

#include "base/error.h"

namespace penstock::schedule {

StageGraph::StageGraph(int num_stages, std::vector<StageEdge> edges)
    : num_stages_(num_stages), edges_(std::move(edges)), inputs_(num_stages), outputs_(num_stages) {
  for (size_t e = 0; e < edges_.size(); ++e) {
    const StageEdge& edge = edges_[e];
    if (edge.from >= num_stages || edge.to >= num_stages)
      throw UserError("edge {} -> {} of the stage graph names a stage outside 0..{}", edge.from, edge.to,
                      num_stages - 1);
    if (edge.from == edge.to)
      throw UserError("edge {} -> {} of the stage graph goes from a stage to itself", edge.from, edge.to);
    outputs_[edge.from].push_back(static_cast<int>(e));
    inputs_[edge.to].push_back(static_cast<int>(e));
  }
  // Kahn's algorithm: whatever is left when no stage without open inputs remains is on a cycle.
  std::vector<size_t> open(num_stages);
  std::vector<int> ready;
  for (int s = 0; s < num_stages; ++s) {
    open[s] = inputs_[s].size();
    if (open[s] == 0) ready.push_back(s);
  }
  int done = 0;
  while (!ready.empty()) {
    const int s = ready.back();
    ready.pop_back();
    ++done;
    for (const int e : outputs_[s])
      if (--open[edges_[e].to] == 0) ready.push_back(edges_[e].to);
  }
  if (done != num_stages) throw UserError("the stage graph has a cycle");
}

StageGraph StageGraph::Chain(int num_stages) {
  std::vector<StageEdge> edges;
  for (int s = 0; s + 1 < num_stages; ++s)
    edges.push_back({static_cast<uint16_t>(s), static_cast<uint16_t>(s + 1), "hidden"});
  return StageGraph(num_stages, std::move(edges));
}

bool StageGraph::is_chain() const {
  if (static_cast<int>(edges_.size()) != std::max(0, num_stages_ - 1)) return false;
  for (int s = 0; s + 1 < num_stages_; ++s)
    if (edges_[s].from != s || edges_[s].to != s + 1) return false;
  return true;
}

}  // namespace penstock::schedule
