#include "cost/fsdp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "cost/fsdp_step.h"

namespace penstock::cost {
namespace {

void Check(const FsdpModel& m, const FsdpCluster& c, const FsdpChoice& o) {
  if (m.layers < 1 || m.hidden <= 0 || m.element_bytes <= 0)
    throw UserError("FSDP model: layers {}, hidden {}, element bytes {}; all must be positive", m.layers, m.hidden,
                    m.element_bytes);
  if (c.ranks < 1 || c.group() < 1 || c.ranks % c.group() != 0)
    throw UserError("FSDP cluster: shard groups of {} do not divide {} ranks; use a divisor", c.group(), c.ranks);
  if (c.flops_per_second <= 0 || c.efficiency <= 0 || c.efficiency > 1)
    throw UserError("FSDP cluster: peak {} FLOP/s, efficiency {}; the peak must be positive, the efficiency in (0, 1]",
                    c.flops_per_second, c.efficiency);
  if (c.ranks > 1 && c.bytes_per_second <= 0)
    throw UserError("FSDP cluster: {} ranks need a bandwidth above 0", c.ranks);
  if (o.zero < 1 || o.zero > 3) throw UserError("FSDP: ZeRO stage {}; there are 1, 2 and 3", o.zero);
  if (o.kept < 0 || o.kept > 1) throw UserError("FSDP: share of activations kept {}; must be in [0, 1]", o.kept);
  if (o.sequence < 1 || o.tokens < 0 || o.accumulation < 1)
    throw UserError("FSDP: sequence {}, tokens {}, accumulation {}; sequence and accumulation must be at least 1",
                    o.sequence, o.tokens, o.accumulation);
}

bool KeepsWholeGradients(const FsdpChoice& o) { return o.zero == 1 || o.no_sync; }
int Reductions(const FsdpChoice& o) { return KeepsWholeGradients(o) ? 1 : o.accumulation; }

double LayerBytes(const FsdpModel& m) { return 12 * m.hidden * m.hidden * m.element_bytes; }

struct PerParameter {
  PerParameter(const FsdpModel& m, const FsdpCluster& c, const FsdpChoice& o) {
    const auto group = static_cast<double>(c.group());
    parameters = o.zero == 3 ? m.element_bytes / group : m.element_bytes;
    gradients = KeepsWholeGradients(o) ? m.element_bytes : m.element_bytes / group;
    optimizer = m.optimizer_bytes_per_parameter / group;
  }
  double sum() const { return parameters + gradients + optimizer; }
  double parameters, gradients, optimizer;
};

double BuffersOf(const FsdpModel& m, const FsdpChoice& o) {
  const int layers = (o.zero == 3 ? o.gathered_layers : 0) + (KeepsWholeGradients(o) ? 0 : 1);
  return layers * LayerBytes(m);
}

// Activations of one token: of every layer, and what does not grow with the layers.
double LayerTokenBytes(const FsdpModel& m, const FsdpChoice& o) {
  return m.hidden * m.element_bytes * (1 + 16 * o.kept);
}
double OtherTokenBytes(const FsdpModel& m, const FsdpChoice& o) {
  return (o.working_set && o.kept < 1 ? 17 * m.hidden * m.element_bytes : 0) + m.logits_bytes_per_token;
}

}  // namespace

double RingBytesPerSecond(double inside_bytes_per_second, double card_bytes_per_second) {
  return std::min(inside_bytes_per_second, card_bytes_per_second);
}

double FsdpForwardFlops(const FsdpModel& m, double sequence) {
  return 2 * m.phi() + (m.causal ? 2 : 4) * m.layers * m.hidden * sequence;
}

FsdpMemory FsdpMemoryOf(const FsdpModel& m, const FsdpCluster& c, const FsdpChoice& o) {
  Check(m, c, o);
  const PerParameter per(m, c, o);
  FsdpMemory memory;
  memory.parameters = per.parameters * m.phi();
  memory.gradients = per.gradients * m.phi();
  memory.optimizer = per.optimizer * m.phi();
  memory.buffers = BuffersOf(m, o);
  memory.per_token = m.layers * LayerTokenBytes(m, o) + OtherTokenBytes(m, o);
  memory.free = c.memory_bytes - c.reserved_bytes - memory.state() - memory.buffers;
  if (memory.free > 0) memory.max_tokens = static_cast<int64_t>(std::floor(memory.free / memory.per_token));
  return memory;
}

FsdpEstimate EstimateFsdp(const FsdpModel& m, const FsdpCluster& c, const FsdpChoice& o) {
  FsdpEstimate e;
  e.memory = FsdpMemoryOf(m, c, o);
  const auto max_tokens = static_cast<double>(e.memory.max_tokens);
  e.tokens = o.tokens > 0 ? o.tokens : o.sequence * std::floor(max_tokens / o.sequence);
  e.fits = e.tokens > 0 && e.tokens <= max_tokens;
  if (!e.fits) e.bound = FsdpBound::memory;

  // The network. Bytes of one pass over all weights, sent by a rank.
  const double whole = m.element_bytes * m.phi();
  const auto group = static_cast<double>(c.group());
  const double replicas = static_cast<double>(c.ranks) / group;
  const double pass_bytes = whole * (group - 1) / group;
  const double replica_bytes = 2 * (replicas - 1) / replicas * whole / group;
  double latency = 0, bandwidth = 0;  // of one gather and one reduction together
  if (c.group() > 1) {
    e.gather = pass_bytes / c.bytes_per_second + m.layers * c.latency_seconds;
    latency = 2 * m.layers * c.latency_seconds;
    bandwidth = 2 * pass_bytes / c.bytes_per_second;
  }
  e.reduce = e.gather;
  if (replicas > 1) {
    const double seconds =
        replica_bytes / (c.replica_bytes_per_second > 0 ? c.replica_bytes_per_second : c.bytes_per_second);
    e.reduce += seconds + m.layers * c.latency_seconds;
    latency += m.layers * c.latency_seconds;
    bandwidth += seconds;
  }
  const int gathers = o.zero == 3 ? 2 * o.accumulation : 1;
  e.bytes_sent = gathers * pass_bytes + Reductions(o) * (pass_bytes + replica_bytes);

  const double flops = FsdpForwardFlops(m, o.sequence), attained = c.efficiency * c.flops_per_second;
  e.tokens_to_hide_forward = e.gather * attained / flops;
  const bool again = o.zero == 3;
  const double backward_network = !again          ? e.reduce
                                  : o.full_duplex ? std::max(e.gather, e.reduce)
                                                  : e.gather + e.reduce;
  e.tokens_to_hide_step = std::max(e.tokens_to_hide_forward, backward_network * attained / ((3 - o.kept) * flops));
  e.hidden_efficiency =
      e.gather > 0 ? max_tokens * flops / (e.gather * c.flops_per_second) : std::numeric_limits<double>::infinity();
  if (e.tokens <= 0) return e;

  e.forward = e.tokens * flops / attained;
  e.backward = (3 - o.kept) * e.forward;
  const int first = again ? o.accumulation : 1;  // forwards that gather
  const int reduced = Reductions(o);
  e.step = first * std::max(e.forward, e.gather) + (o.accumulation - first) * e.forward +
           reduced * std::max(e.backward, backward_network) +
           (o.accumulation - reduced) * (again ? std::max(e.backward, e.gather) : e.backward);
  if (o.expose_ends) e.exposed_ends = (e.gather + e.reduce) / m.layers;
  e.step += e.exposed_ends;
  if (o.accumulation == 1) {
    const double layers = m.layers;
    e.layerwise_step =
        FsdpLayerwise<double>({e.gather / layers, e.forward / layers, e.backward / layers, e.reduce / layers}, m.layers,
                              {.gathers_again = again, .full_duplex = o.full_duplex});
  }
  e.tokens_per_second = o.accumulation * e.tokens / e.step;
  e.hfu = e.tokens_per_second * (4 - o.kept) * flops / c.flops_per_second;
  e.mfu = 3 * e.tokens_per_second * flops / c.flops_per_second;
  const bool waits = e.forward < e.gather || e.backward < backward_network;
  if (e.fits) e.bound = !waits ? FsdpBound::compute : latency > bandwidth ? FsdpBound::latency : FsdpBound::bandwidth;
  return e;
}

int64_t FsdpMaxLayers(const FsdpModel& m, const FsdpCluster& c, const FsdpChoice& o) {
  Check(m, c, o);
  const double per_parameter = PerParameter(m, c, o).sum();
  const double layer_parameters = 12 * m.hidden * m.hidden;
  const double other_parameters = std::max(0.0, m.phi() - m.layers * layer_parameters);
  const double fixed =
      c.reserved_bytes + BuffersOf(m, o) + other_parameters * per_parameter + o.sequence * OtherTokenBytes(m, o);
  const double layer = layer_parameters * per_parameter + o.sequence * LayerTokenBytes(m, o);
  return std::max<int64_t>(0, static_cast<int64_t>(std::floor((c.memory_bytes - fixed) / layer)));
}

std::string Explain(const FsdpModel& m, const FsdpCluster& c, const FsdpChoice& o, const FsdpEstimate& e) {
  const auto bytes = [](double b) { return FormatBytes(static_cast<int64_t>(std::max(0.0, b))); };
  std::string text = fmt::format(
      "ZeRO-{} over {} ranks{}: {} parameters, {} layers, sequence {:.0f}, {:.0f}% of "
      "activations kept\n",
      o.zero, c.group(), c.group() < c.ranks ? fmt::format(" x {} replicas", c.ranks / c.group()) : "",
      FormatCount(m.phi()), m.layers, o.sequence, 100 * o.kept);
  text += fmt::format("memory: state {} (parameters {}, gradients {}, optimizer {}), buffers {}",
                      bytes(e.memory.state()), bytes(e.memory.parameters), bytes(e.memory.gradients),
                      bytes(e.memory.optimizer), bytes(e.memory.buffers));
  if (e.memory.free <= 0)
    return text + fmt::format("; {} more than the {} there are\nlimit: memory\n", bytes(-e.memory.free),
                              bytes(c.memory_bytes - c.reserved_bytes));
  text += fmt::format("; room for {} tokens at {} each\n", e.memory.max_tokens, bytes(e.memory.per_token));
  if (!e.fits) return text + fmt::format("limit: memory; {:.0f} tokens do not fit\n", std::max(e.tokens, o.sequence));
  text += fmt::format(
      "network: weights are gathered in {} and reduced in {}; a forward hides the gather from {:.0f} "
      "tokens on, a whole step everything from {:.0f}\n",
      FormatSeconds(e.gather), FormatSeconds(e.reduce), std::ceil(e.tokens_to_hide_forward),
      std::ceil(e.tokens_to_hide_step));
  text += fmt::format(
      "step: {} for {} x {:.0f} tokens (forward {}, backward {}, exposed ends {}); {} tokens/s and rank, "
      "HFU {:.1f}%, MFU {:.1f}%\n",
      FormatSeconds(e.step), o.accumulation, e.tokens, FormatSeconds(e.forward), FormatSeconds(e.backward),
      FormatSeconds(e.exposed_ends), FormatCount(e.tokens_per_second), 100 * e.hfu, 100 * e.mfu);
  return text + fmt::format("limit: {}\n", Name(e.bound));
}

}  // namespace penstock::cost
