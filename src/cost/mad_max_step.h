// src/cost/mad_max_step.h
//
// The order of MAD-Max's step: which operation of which layer is placed when, and what it waits for. Durations are
// given; cost/mad_max.h makes them from a model and a cluster. Lookup layers (embedding tables) come first, dense
// layers follow in order; k counts dense layers.
//
//   forward   lookups "f.i." -> their exchange "a2a.f.i."
//             per dense layer: gather "ag.f.i." (after the compute of k-2: two layers gathered at once) -> compute
//             "f.i." (after its gather, the previous layer's tensor all-reduce and, where `joins_lookups`, all lookups
//             and exchanges) -> tensor all-reduce "ar.f.i.", which blocks the next layer
//   backward  layers reversed; the gather "ag.b.i." of the next layer is placed before the compute of the current one
//   and
//             waits for nothing but its stream -> compute "b.i." -> tensor all-reduce "ar.b.i." (blocks) ->
//             reduce-scatter "rs.i." -> gradient all-reduce "gr.i.": these two block nothing but the end of the step
//             after the joining layer: exchange of the lookups' gradients "a2a.b.i.", or their all-reduce "gr.i."
//   last      updates of the lookups "b.i."
// What takes no time is not placed: a degree of 1 is as if the split were not there.
//
// Against the general engine (tests/cost/mad_max_replay_test.cc): the trace is the in-order replay of the schedule with
// these actions, exactly, when all collectives share one queue. Where it is not: queues of several groups (tensor
// inside a node, data between nodes) run side by side in the engine, which is then at most as long as the trace. It
// leaves out the optimizer, hosts, and the wait for a slower rank (every rank does the same).
#pragma once

#include <string>
#include <vector>

#include "cost/two_stream_trace.h"

namespace penstock::cost {

template <typename Time>
struct MadMaxLayerTimes {
  bool lookup = false;
  bool joins_lookups = false;           // dense: the first layer that needs them; exactly one if there are any
  bool trains = true;                   // gradients are reduced, tables updated
  bool backward_runs = true;            // dense
  Time forward = 0, backward = 0;       // compute; of a lookup: reading rows, updating rows
  Time gather = 0, reduce_scatter = 0;  // sharded parameters: once per pass; gradients
  Time tensor_reduce = 0;               // activations, once per pass
  Time exchange = 0;                    // lookups, once per pass
  Time gradient_reduce = 0;             // over replicas
};

struct MadMaxOrder {
  bool training = true;
  // Gathers of the backward too wait for the compute two layers before, as a runtime with two gather buffers does.
  // With it the step of equal sharded layers is FsdpLayerwise (cost/fsdp_step.h).
  bool limit_backward_gathers = false;
};

// UserError when lookups follow dense layers, or other than one layer joins them.
template <typename Time>
TwoStreamTrace<Time> TraceMadMax(const std::vector<MadMaxLayerTimes<Time>>& layers, const MadMaxOrder& order = {});

extern template TwoStreamTrace<Rational> TraceMadMax(const std::vector<MadMaxLayerTimes<Rational>>&,
                                                     const MadMaxOrder&);
extern template TwoStreamTrace<double> TraceMadMax(const std::vector<MadMaxLayerTimes<double>>&, const MadMaxOrder&);

}  // namespace penstock::cost
