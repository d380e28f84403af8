// src/model/partition.h
//
// Cuts the chain of layers into contiguous stages. Every layer is in exactly one stage and no stage is empty, by
// construction: a partition is a list of borders, checked against the model (Megatron-LM issue 1304 trained 28 of 30
// layers).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/spec.h"

namespace penstock::model {

struct Partition {
  std::vector<int> first;  // stages + 1 entries: stage s holds layers [first[s], first[s + 1])
  int stages() const { return static_cast<int>(first.size()) - 1; }
  friend bool operator==(const Partition&, const Partition&) = default;
};

// All of these throw UserError when there are more stages than layers, or counts do not add up.

// Repeated layers spread as evenly as they go, the longer stages first (30 over 4: 8, 8, 7, 7); layers before them
// join the first stage, layers after them the last. With more stages than repeated layers the head, then the embedding
// get a stage of their own.
Partition PartitionEven(const ModelSpec& spec, int stages);

// Smallest possible cost of the most expensive stage, then the smallest sum of squared costs. `cost` has one entry per
// layer. O(layers^2 stages).
Partition PartitionBalanced(const ModelSpec& spec, std::span<const double> cost, int stages);

// Number of repeated layers per stage.
Partition PartitionExplicit(const ModelSpec& spec, std::span<const int> repeated);

// Forward and backward flops of every layer, plus a charge for the activation bytes it moves, so that an embedding is
// not free. For PartitionBalanced when nothing was measured.
std::vector<double> LayerCosts(const ModelSpec& spec, int64_t batch, int64_t length);

// "even", "balanced" (by LayerCosts at one sequence of full context) or a list such as "3,3,2".
Partition MakePartition(const ModelSpec& spec, std::string_view text, int stages);

// "stage 0: embed + blocks 0-6" one line per stage, with parameters and share of the flops; ends with the total.
std::string ExplainPartition(const ModelSpec& spec, const Partition& partition);

// Throws InternalError unless every layer is in exactly one non-empty stage.
void CheckPartition(const ModelSpec& spec, const Partition& partition);

}  // namespace penstock::model
