#include "schedule/verify/coverage.h"

#include "schedule/effects.h"
#include "schedule/operators.h"

namespace penstock::schedule::verify {

void CheckRoute(const Schedule& s, Faults& faults) {
  for (int r = 0; r < s.num_ranks(); ++r) {
    for (int i = 0; i < static_cast<int>(s.ranks[r].size()); ++i) {
      const Action& action = s.ranks[r][i];
      const int m = action.key.micro_batch;
      if (IsComputeKind(action.key.kind)) {
        const int expected = s.route.rank_of(action.key.unit.stage, m);
        if (expected != r)
          faults.Add(FaultCode::route, {r, i},
                     "'{}' is on rank {}, but the route puts stage {} of micro-batch {} on rank {}", ToString(action),
                     r, action.key.unit.stage, m, expected);
      } else if (action.key.kind == Kind::send || action.key.kind == Kind::recv) {
        const StageEdge& edge = s.graph.edges()[action.key.part];
        const int producer = action.key.unit.stage;
        const bool value = OpName(action.key.op) == ops::kActivation;
        const bool gradient = OpName(action.key.op) == ops::kGradient;
        if ((producer != edge.from || gradient) && (producer != edge.to || value)) {
          faults.Add(FaultCode::route, {r, i},
                     "'{}' on rank {} carries edge {} ({} -> {}), for which stage {} does not make it",
                     ToString(action), r, action.key.part, edge.from, edge.to, producer);
          continue;
        }
        const int consumer = producer == edge.from ? edge.to : edge.from;
        const bool send = action.key.kind == Kind::send;
        const int here = s.route.rank_of(send ? producer : consumer, m);
        const int there = s.route.rank_of(send ? consumer : producer, m);
        if (here != r || there != action.peer_or_group)
          faults.Add(FaultCode::route, {r, i}, "'{}' on rank {}: the route has this tensor go from rank {} to rank {}",
                     ToString(action), r, send ? here : there, send ? there : here);
      }
    }
  }
}

void CheckCoverage(const Schedule& s, Faults& faults) {
  const int micro_batches = s.num_micro_batches();
  constexpr uint8_t kForward = 4;  // beside the halves (schedule/effects.h)
  std::vector<uint8_t> seen(static_cast<size_t>(s.num_stages()) * micro_batches);
  const bool once = s.contract.coverage == CoverageRule::once;
  for (int r = 0; r < s.num_ranks(); ++r) {
    for (int i = 0; i < static_cast<int>(s.ranks[r].size()); ++i) {
      const Key& key = s.ranks[r][i].key;
      const uint8_t bits = key.kind == Kind::forward ? kForward : uint8_t{HalvesOf(key.kind)};
      if (bits == 0) continue;
      uint8_t& at = seen[static_cast<size_t>(key.unit.stage) * micro_batches + key.micro_batch];
      if (once && (at & bits) != 0)
        faults.Add(FaultCode::duplicate_compute, {r, i}, "'{}' on rank {} computes what was computed before",
                   ToString(key), r);
      at |= bits;
    }
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (int m = 0; m < micro_batches; ++m) {
      const uint8_t at = seen[static_cast<size_t>(stage) * micro_batches + m];
      const auto missing = [&](const char* what) {
        faults.Add(FaultCode::missing_compute, {-1, -1}, "stage {} of micro-batch {} has no {}; rank {} should have it",
                   stage, m, what, s.route.rank_of(stage, m));
      };
      if ((at & kForward) == 0) missing("forward");
      if ((at & kBothHalves) == 0) missing("backward");
      if ((at & kBothHalves) == kWeightHalf) missing("input half of its backward (backward_input)");
      if ((at & kBothHalves) == kInputHalf) missing("weight half of its backward (backward_weight)");
    }
  }
}

}  // namespace penstock::schedule::verify
