// src/cost/mad_max.h
//
// MAD-Max: a fast model of one training or inference step under hierarchical strategies per class of layers (Hsia et
// al., ISCA 2024, arXiv 2310.02784; durations and names of the authors' artifact, samhsia/MADMax, as far as it was
// read; memory, search and the placing of lookups beside dense layers are designs of this project). A model, a system
// and a strategy give durations, cost/mad_max_step.h gives their order, the trace gives the step and its exposed
// communication.
//
// A strategy is a list of (split, degree), innermost first: the first takes `degree` neighbouring devices, the next
// groups of those; the product of degrees is the number of devices. An entry talks over the lowest level whose group
// holds its span, so a list of one entry uses the outermost link, and a degree of 1 is as if the entry were not there.
//   ddp    layer replicated                   gradient all-reduce
//   fsdp   parameters sharded, first only     all-gather per pass, reduce-scatter
//   tp     products split, dense only         activation all-reduce per pass, blocks the next layer
//   mp     tables split, lookups only         exchange of the looked-up rows per pass, blocks
// With B samples, N devices, t = product of tp degrees, d = product of fsdp degrees, b = bytes per parameter:
//   compute        forward FLOPs B / N over the attained FLOP/s; backward twice that; frozen layers once
//   lookup         lookup bytes B / N over the attained memory bandwidth, again for the update
//   tp             output bytes of B t / N samples
//   fsdp           params b / t gathered; the same reduced
//   ddp            params b / (t d): what the rank really holds. (The artifact divides the shards by each level's
//   degree
//                  while it walks the list, so that ['tp', 'ddp'] reduces the whole layer.)
//   mp             output bytes of B / (product of other degrees) samples, 1/degree of them per device. (The artifact
//   has
//                  twice the lookup bytes over the degree; what is exchanged is what the lookups return.)
//   ddp of tables  gradient rows: lookup bytes B / N
// Collectives are rings and pairwise exchanges of cost/collectives.h: bandwidth n / (2 (n-1)) for all-reduce, n / (n-1)
// for the others, and the latency of every step.
// Memory of a device: parameters, gradients, optimizer state of its shards; activations kept for its samples (divided
// by t) and layer outputs; two gathered layers. Inference: parameters, the largest output, gathered layers.
//
// Left out: the optimizer's time, moving samples between layers that split them differently, unbalanced tables,
// links shared by groups that talk at once.
// Threads: functions only. Errors: UserError that says what a strategy would have to be.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cost/mad_max_step.h"

namespace penstock::cost {

struct MadMaxLayer {
  std::string name;         // "attention 3"
  std::string layer_class;  // what strategies are chosen for: "attention"
  bool lookup = false;
  bool joins_lookups = false;
  double parameters = 0;
  double bytes_per_parameter = 2;
  double optimizer_bytes_per_parameter = 12;
  double forward_flops = 0;  // of one sample, like the following
  double lookup_bytes = 0;   // rows read
  double output_bytes = 0;   // activations or pooled rows handed on
  double kept_bytes = 0;     // kept for the backward beside the output
};

struct MadMaxModel {
  std::string name;
  std::vector<MadMaxLayer> layers;  // lookups first
};

struct MadMaxLevel {
  std::string name;             // "node"
  int64_t devices = 1;          // groups of the level below
  double bytes_per_second = 0;  // of a device in one direction; 0: infinite
  double latency_seconds = 0;
};

struct MadMaxSystem {
  std::string name;
  double flops_per_second = 0;  // peak
  double flops_utilisation = 1;
  double memory_bytes_per_second = 0;  // peak
  double memory_utilisation = 1;
  double memory_bytes = 0;          // of a device
  std::vector<MadMaxLevel> levels;  // innermost first

  int64_t devices() const;
};

enum class Split : uint8_t { ddp, fsdp, tp, mp };
inline constexpr std::array<std::string_view, 4> kSplitNames = {"ddp", "fsdp", "tp", "mp"};
constexpr std::string_view Name(Split split) { return kSplitNames[static_cast<size_t>(split)]; }

struct SplitOver {
  Split split = Split::ddp;
  int64_t degree = 1;
  friend bool operator==(const SplitOver&, const SplitOver&) = default;
};
using Strategy = std::vector<SplitOver>;
using Mapping = std::map<std::string, Strategy>;  // by layer class
std::string ToString(const Strategy& strategy);   // "tp 8, ddp 16"
std::string ToString(const Mapping& mapping);     // "attention: tp 8, ddp 16; embedding: mp 128"

struct MadMaxTask {
  double global_batch = 1;         // samples
  bool training = true;            // false: inference
  std::set<std::string> frozen{};  // layer classes that are not trained
};

struct MadMaxEstimate {
  TwoStreamTrace<double> trace;
  double seconds = 0;
  double compute_seconds = 0, communication_seconds = 0;
  double exposed_seconds = 0;  // communication that no compute covers
  double overlapped = 0;       // 1 - exposed / communication; 0 without communication
  double samples_per_second = 0;
  double memory_bytes = 0;  // of a device
  bool fits = false;        // into memory, and every device has at least one sample
};

// UserError when the strategy does not suit the layer or the system.
void CheckStrategy(const MadMaxLayer& layer, const Strategy& strategy, const MadMaxSystem& system);

// Durations of all layers, in order.
std::vector<MadMaxLayerTimes<double>> MadMaxTimes(const MadMaxModel& model, const MadMaxSystem& system,
                                                  const MadMaxTask& task, const Mapping& mapping);
double MadMaxMemory(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                    const Mapping& mapping);
MadMaxEstimate EstimateMadMax(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                              const Mapping& mapping);

// Flat: tables split over all devices, everything else fully sharded over all devices.
Mapping FlatMapping(const MadMaxModel& model, const MadMaxSystem& system);

// A few lines for people.
std::string Explain(const MadMaxModel& model, const MadMaxSystem& system, const Mapping& mapping,
                    const MadMaxEstimate& estimate);

}  // namespace penstock::cost
