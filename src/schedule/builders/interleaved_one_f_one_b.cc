// src/schedule/builders/interleaved_one_f_one_b.cc
//
// Interleaved 1F1B (depth-first): V chunks per position on a loop; P micro-batches go through a chunk, then through
// the position's next one. Narayanan et al., SC 2021, section 2.2.2; order of Megatron-LM's schedule table.
//   P positions, d = position, V chunks, M micro-batches, f and b = times of one chunk
//   warm-up            2(P - 1 - d) + (V - 1) P chunk forwards
//   makespan           (M V + P - 1)(f + b)     bubble (P - 1)(f + b)       exact when P divides M
//                      (P V + M - 1)(f + b)                                 exact when M < P
//   live activations   min(M V, 2(P - 1 - d) + (V - 1) P + 1) / V           exact when P divides M
// A last block shorter than P is ordered as a full one with its missing micro-batches left out: the order of a full
// schedule stays free of deadlock when micro-batches are left out, whereas closing up the table makes it deadlock
// (P = 4, V = 3, M = 5: docs/decisions.md).
#include <algorithm>
#include <utility>

#include "schedule/builder.h"

namespace penstock::schedule {
namespace {

std::optional<std::string> Refuse(const PipelineShape& shape) {
  if (shape.chunks < 2) return "it interleaves at least 2 chunks per rank; with 1 chunk use 1f1b or eager-1f1b";
  return std::nullopt;
}

int WarmUp(const PipelineShape& shape, int d) { return 2 * (shape.ranks - 1 - d) + (shape.chunks - 1) * shape.ranks; }

ComputeOrder Build(const PipelineShape& shape) {
  const int p = shape.ranks, v = shape.chunks, m = shape.micro_batches;
  std::vector<std::pair<int, int>> visits;  // (micro-batch, chunk) in forward order, the last block filled up to P
  for (int block = 0; block < m; block += p)
    for (int c = 0; c < v; ++c)
      for (int i = block; i < block + p; ++i) visits.emplace_back(i, c);
  const int n = static_cast<int>(visits.size());

  ComputeOrder order;
  order.placement = MakePlacement(shape.placement, p, shape.stages());
  order.positions.resize(p);
  for (int d = 0; d < p; ++d) {
    ComputeList& list = order.positions[d];
    const auto forward = [&](int k) {
      if (visits[k].first < m) list.Forward(visits[k].second * p + d, visits[k].first);
    };
    const auto backward = [&](int k) {
      if (visits[k].first < m) list.Backward((v - 1 - visits[k].second) * p + d, visits[k].first);
    };
    const int w = std::min(n, WarmUp(shape, d));
    for (int k = 0; k < w; ++k) forward(k);
    for (int k = 0; k < n; ++k) {
      if (w + k < n) forward(w + k);
      backward(k);
    }
  }
  return order;
}

std::optional<Rational> Makespan(const PipelineShape& shape, const UniformCosts& costs) {
  const int64_t m = shape.micro_batches, p = shape.ranks, v = shape.chunks;
  if (costs.hop != Rational(0) || (m > p && m % p != 0)) return std::nullopt;
  const int64_t slots = m < p ? p * v + m - 1 : m * v + p - 1;
  return Rational(slots) * (costs.forward + costs.backward());
}

std::optional<Rational> Peak(const PipelineShape& shape, int d) {
  if (shape.micro_batches % shape.ranks != 0) return std::nullopt;
  return Rational(std::min(shape.micro_batches * shape.chunks, WarmUp(shape, d) + 1), shape.chunks);
}

const RegisterBuilder kRegister{{
    .name = "interleaved-1f1b",
    .summary = "1F1B over several chunks per rank, P micro-batches per chunk visit (depth-first)",
    .source = "Narayanan et al., SC 2021, section 2.2.2",
    .placements = {"loop"},
    .splits_backward = false,
    .default_chunks = 2,
    .refuse = &Refuse,
    .build = &Build,
    .closed_forms = {.makespan = &Makespan, .max_span = &Makespan, .peak_micro_batches = &Peak},
    .contract = {},
}};

}  // namespace
}  // namespace penstock::schedule
