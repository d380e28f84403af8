// src/cost/fsdp.h
//
// A closed-form model of (fully) sharded data parallelism: memory, the tokens that fit, the tokens that hide the
// network, the time of a step and what limits it. After Wang, Ebert, Filatov, Kesselheim, arXiv 2504.03655, whose bound
// (memory times bandwidth) it reconstructs: every constant was derived here, none is a figure of the paper.
//
//   L layers, H hidden, s sequence, phi parameters, Q bytes per element, G ranks of a shard group, S bytes/s, eps
//   seconds per collective, F peak FLOP/s, e attained share of it, gamma share of activations kept, E tokens of a rank
//   state     ZeRO-3: (2 Q + opt) phi / G    ZeRO-2: Q phi + (Q + opt) phi / G    ZeRO-1: 2 Q phi + opt phi / G
//   buffers   ZeRO-3: gathered layers x 12 H^2 Q;  ZeRO-2 and 3: one layer's whole gradient
//   per token L H Q (1 + 16 gamma) (+ 17 H Q recompute working set when gamma < 1) (+ logits)
//   T_ag      Q phi (G-1)/G / S + L eps;  T_rs the same;  HSDP: + all-reduce of Q phi / G over N/G replicas
//   F_fwd     2 phi + 4 L H s per token (causal 2 L H s);  T_fwd = E F_fwd / (e F);  T_bwd = (3 - gamma) T_fwd
//   step      max(T_fwd, T_ag) + max(T_bwd, T_ag + T_rs) + (T_ag + T_rs)/L      see cost/fsdp_step.h for the exact form
//   E*        T_ag e F / F_fwd: the forward hides its gathers from here on; ~ e F Q / 2S, whatever the model's size
//   x         E_max F_fwd / (T_ag F): highest efficiency at which the forward does not wait when memory is full.
//             HFU <= min(e, (4-gamma)/3 x), with full duplex (4-gamma)/2 x
// ZeRO-1/2 keep whole parameters: their only gather is that of the updated ones, under the next forward.
//
// Not in it: the optimizer's time, embeddings in F_fwd (unless they are counted in phi), uneven layers, contention of
// links, efficiency that depends on E. With accumulation the max-form is multiplied and the ends are exposed once.
// Units: bytes, seconds, tokens of one rank. Threads: functions only. Errors: UserError for sizes that make no sense.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::cost {

struct FsdpModel {
  int layers = 1;
  double hidden = 1;
  double parameters = 0;                      // 0: 12 layers hidden^2
  double element_bytes = 2;                   // of parameters, gradients, activations
  double optimizer_bytes_per_parameter = 12;  // fp32 master and two moments beside 2-byte parameters; 8 beside fp32
  double logits_bytes_per_token = 0;
  bool causal = false;  // attention does half the products

  double phi() const { return parameters > 0 ? parameters : 12.0 * layers * hidden * hidden; }
};

struct FsdpCluster {
  int64_t ranks = 1;
  int64_t shard_group = 0;  // ranks that share one copy of the state (HSDP); 0: all
  double memory_bytes = 0;
  double reserved_bytes = 0;
  double flops_per_second = 0;          // peak
  double efficiency = 1;                // share of the peak that kernels attain
  double bytes_per_second = 0;          // of a rank in one direction, as a ring in the shard group sees it
  double latency_seconds = 0;           // of one collective
  double replica_bytes_per_second = 0;  // between replicas of HSDP; 0: the same

  int64_t group() const { return shard_group > 0 ? shard_group : ranks; }
};

// What a ring over nodes gets per rank: it crosses each node's network card once in each direction, so the card's whole
// bandwidth is one rank's.
double RingBytesPerSecond(double inside_bytes_per_second, double card_bytes_per_second);

struct FsdpChoice {
  int zero = 3;              // 1, 2, 3
  double kept = 1;           // gamma
  double sequence = 1;       // tokens
  double tokens = 0;         // of a rank and micro-batch; 0: as many whole sequences as fit
  int accumulation = 1;      // micro-batches of a rank in a step
  bool no_sync = false;      // reduce once per step; keeps whole gradients (ZeRO-1 always does)
  bool full_duplex = false;  // gathers and reductions run in opposite directions of the link
  bool expose_ends = true;   // count the first gather and the last reduction
  int gathered_layers = 2;   // alive at once
  bool working_set = true;   // count one recomputed layer
};

struct FsdpMemory {
  double parameters = 0, gradients = 0, optimizer = 0;
  double buffers = 0;      // gathered layers, whole gradient of one layer
  double free = 0;         // for activations; negative: the state alone does not fit
  double per_token = 0;    // activations
  int64_t max_tokens = 0;  // E_max; 0 when nothing fits
  double state() const { return parameters + gradients + optimizer; }
};

enum class FsdpBound : uint8_t { compute, bandwidth, memory, latency };
inline constexpr std::array<std::string_view, 4> kFsdpBoundNames = {"compute", "bandwidth", "memory", "latency"};
constexpr std::string_view Name(FsdpBound bound) { return kFsdpBoundNames[static_cast<size_t>(bound)]; }

struct FsdpEstimate {
  FsdpMemory memory;
  bool fits = false;                 // the tokens asked for (at least one sequence)
  double tokens = 0;                 // of a rank and micro-batch
  double gather = 0;                 // seconds: T_ag
  double reduce = 0;                 // T_rs, with the all-reduce over replicas
  double forward = 0, backward = 0;  // compute of one micro-batch
  double exposed_ends = 0;
  double step = 0;                       // by the max-form
  std::optional<double> layerwise_step;  // exact for equal layers; accumulation 1 only
  double bytes_sent = 0;                 // by a rank in a step
  double tokens_per_second = 0;          // of a rank: K
  double hfu = 0, mfu = 0;
  double tokens_to_hide_forward = 0;  // E*
  double tokens_to_hide_step = 0;     // both phases wait for nothing from here on
  double hidden_efficiency = 0;       // x; infinite without communication
  // memory: the tokens do not fit. compute: no phase waits for the network. Else what the network's time is made of.
  FsdpBound bound = FsdpBound::compute;
};

FsdpMemory FsdpMemoryOf(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& choice);
FsdpEstimate EstimateFsdp(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& choice);

// Forward FLOPs of one token.
double FsdpForwardFlops(const FsdpModel& model, double sequence);
// Most layers of this hidden size with which one sequence fits; parameters beyond 12 L H^2 stay what they are.
int64_t FsdpMaxLayers(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& choice);

// A few lines for people.
std::string Explain(const FsdpModel& model, const FsdpCluster& cluster, const FsdpChoice& choice,
                    const FsdpEstimate& estimate);

}  // namespace penstock::cost
