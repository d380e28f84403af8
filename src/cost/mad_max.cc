#include "cost/mad_max.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "cost/collectives.h"

namespace penstock::cost {
namespace {

// What a strategy makes of the numbers of one layer.
struct Shares {
  explicit Shares(const Strategy& strategy) {
    for (const SplitOver& s : strategy) {
      (s.split == Split::ddp    ? ddp
       : s.split == Split::fsdp ? fsdp
       : s.split == Split::tp   ? tp
                                : mp) *= static_cast<double>(s.degree);
    }
  }
  double ddp = 1, fsdp = 1, tp = 1, mp = 1;
  double shards() const { return fsdp * tp * mp; }
};

AlphaBeta LinkOf(const MadMaxSystem& system, int64_t span) {
  int64_t group = 1;
  for (const MadMaxLevel& level : system.levels) {
    group *= level.devices;
    if (span <= group) return {level.latency_seconds, level.bytes_per_second};
  }
  return {};
}

const Strategy& StrategyOf(const MadMaxLayer& layer, const Mapping& mapping) {
  const auto it = mapping.find(layer.layer_class);
  if (it == mapping.end())
    throw UserError("no strategy for layers of class '{}' (layer '{}')", layer.layer_class, layer.name);
  return it->second;
}

void CheckSystem(const MadMaxSystem& s) {
  if (s.levels.empty() || s.flops_per_second <= 0 || s.flops_utilisation <= 0 || s.memory_bytes_per_second <= 0 ||
      s.memory_utilisation <= 0)
    throw UserError("system '{}': needs a level, FLOP/s, memory bandwidth and utilisations above 0", s.name);
  for (const MadMaxLevel& level : s.levels)
    if (level.devices < 1) throw UserError("system '{}': level '{}' has {} devices", s.name, level.name, level.devices);
}

// Which layers have a backward: those after (or in) the first thing that trains.
std::vector<bool> BackwardRuns(const MadMaxModel& model, const MadMaxTask& task) {
  std::vector<bool> runs;
  bool lookups_train = false, before = false;
  for (const MadMaxLayer& layer : model.layers) {
    const bool trains = !task.frozen.contains(layer.layer_class);
    if (layer.lookup) {
      lookups_train |= trains;
      runs.push_back(trains);
      continue;
    }
    before |= trains || (layer.joins_lookups && lookups_train);
    runs.push_back(before);
  }
  return runs;
}

MadMaxLayerTimes<double> LayerTimes(const MadMaxLayer& layer, const MadMaxSystem& system, const MadMaxTask& task,
                                    const Strategy& strategy) {
  const Shares shares(strategy);
  const double per_device = task.global_batch / static_cast<double>(system.devices());
  const double rate = system.memory_bytes_per_second * system.memory_utilisation;
  MadMaxLayerTimes<double> t;
  t.lookup = layer.lookup;
  t.joins_lookups = layer.joins_lookups;
  t.trains = !task.frozen.contains(layer.layer_class);
  t.forward = layer.lookup ? per_device * layer.lookup_bytes / rate
                           : per_device * layer.forward_flops / (system.flops_per_second * system.flops_utilisation);
  t.backward = layer.lookup || !t.trains ? t.forward : 2 * t.forward;

  int64_t span = 1;
  for (const SplitOver& s : strategy) {
    span *= s.degree;
    const auto seconds = [&](const char* algorithm, double bytes) {
      return CollectiveSeconds(CountCollective(algorithm, {.ranks = s.degree, .bytes = bytes}), LinkOf(system, span));
    };
    const double weights = layer.parameters * layer.bytes_per_parameter / shares.tp;  // a data-parallel group's
    switch (s.split) {
      case Split::ddp:
        t.gradient_reduce +=
            seconds("all_reduce.ring", layer.lookup ? per_device * layer.lookup_bytes : weights / shares.fsdp);
        break;
      case Split::fsdp:
        t.gather += seconds("all_gather.ring", weights);
        t.reduce_scatter += seconds("reduce_scatter.ring", weights);
        break;
      case Split::tp:
        t.tensor_reduce += seconds("all_reduce.ring", per_device * shares.tp * layer.output_bytes);
        break;
      case Split::mp:
        t.exchange += seconds("all_to_all.pairwise", per_device * layer.output_bytes);
        break;
    }
  }
  return t;
}

}  // namespace

int64_t MadMaxSystem::devices() const {
  int64_t n = 1;
  for (const MadMaxLevel& level : levels) n *= level.devices;
  return n;
}

std::string ToString(const Strategy& strategy) {
  std::string text;
  for (const SplitOver& s : strategy) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(s.split), s.degree);
  return text;
}

std::string ToString(const Mapping& mapping) {
  std::string text;
  for (const auto& [name, strategy] : mapping)
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, ToString(strategy));
  return text;
}

void CheckStrategy(const MadMaxLayer& layer, const Strategy& strategy, const MadMaxSystem& system) {
  const auto fail = [&](const std::string& why) {
    throw UserError("strategy '{}' of layer class '{}': {}", ToString(strategy), layer.layer_class, why);
  };
  int64_t product = 1;
  for (size_t i = 0; i < strategy.size(); ++i) {
    const SplitOver& s = strategy[i];
    if (s.degree < 1) fail(fmt::format("the degree of {} must be at least 1", Name(s.split)));
    product *= s.degree;
    if (s.split == Split::fsdp && i > 0) fail("fsdp may only be the first, innermost entry");
    if (layer.lookup && (s.split == Split::tp || s.split == Split::fsdp)) fail("tables are split by mp or ddp");
    if (!layer.lookup && s.split == Split::mp) fail("mp splits tables; dense layers use tp, fsdp or ddp");
  }
  if (product != system.devices())
    fail(fmt::format("the degrees multiply to {}, the system has {} devices", product, system.devices()));
}

std::vector<MadMaxLayerTimes<double>> MadMaxTimes(const MadMaxModel& model, const MadMaxSystem& system,
                                                  const MadMaxTask& task, const Mapping& mapping) {
  CheckSystem(system);
  const std::vector<bool> backward = BackwardRuns(model, task);
  std::vector<MadMaxLayerTimes<double>> times;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const Strategy& strategy = StrategyOf(model.layers[i], mapping);
    CheckStrategy(model.layers[i], strategy, system);
    times.push_back(LayerTimes(model.layers[i], system, task, strategy));
    times.back().backward_runs = backward[i];
  }
  return times;
}

double MadMaxMemory(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                    const Mapping& mapping) {
  const double per_device = task.global_batch / static_cast<double>(system.devices());
  double bytes = 0, largest_output = 0;
  double gathered = 0, previous = 0;  // two neighbours at once
  for (const MadMaxLayer& layer : model.layers) {
    const Shares shares(StrategyOf(layer, mapping));
    const double held = layer.parameters / shares.shards();
    const double samples = per_device * shares.tp;
    bytes += held * layer.bytes_per_parameter;
    largest_output = std::max(largest_output, samples * layer.output_bytes);
    if (!layer.lookup) {
      const double whole = shares.fsdp > 1 ? layer.parameters / shares.tp * layer.bytes_per_parameter : 0;
      gathered = std::max(gathered, previous + whole);
      previous = whole;
    }
    if (!task.training) continue;
    bytes += samples * (layer.output_bytes + layer.kept_bytes / shares.tp);
    if (task.frozen.contains(layer.layer_class)) continue;
    // Gradients of tables are the rows that were looked up.
    bytes += held * layer.optimizer_bytes_per_parameter;
    bytes += layer.lookup ? per_device * layer.lookup_bytes : held * layer.bytes_per_parameter;
  }
  return bytes + gathered + (task.training ? 0 : largest_output);
}

MadMaxEstimate EstimateMadMax(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                              const Mapping& mapping) {
  MadMaxEstimate e;
  e.trace = TraceMadMax(MadMaxTimes(model, system, task, mapping), {.training = task.training});
  e.seconds = e.trace.makespan();
  e.compute_seconds = e.trace.compute();
  e.communication_seconds = e.trace.communication();
  e.exposed_seconds = e.trace.exposed();
  if (e.communication_seconds > 0) e.overlapped = 1 - e.exposed_seconds / e.communication_seconds;
  if (e.seconds > 0) e.samples_per_second = task.global_batch / e.seconds;
  e.memory_bytes = MadMaxMemory(model, system, task, mapping);
  e.fits = e.memory_bytes <= system.memory_bytes;
  for (const MadMaxLayer& layer : model.layers) {
    const double samples =
        task.global_batch * Shares(StrategyOf(layer, mapping)).tp / static_cast<double>(system.devices());
    if (!layer.lookup && samples < 1) e.fits = false;
  }
  return e;
}

Mapping FlatMapping(const MadMaxModel& model, const MadMaxSystem& system) {
  Mapping mapping;
  for (const MadMaxLayer& layer : model.layers)
    mapping[layer.layer_class] = {{layer.lookup ? Split::mp : Split::fsdp, system.devices()}};
  return mapping;
}

std::string Explain(const MadMaxModel& model, const MadMaxSystem& system, const Mapping& mapping,
                    const MadMaxEstimate& e) {
  std::string text =
      fmt::format("{} on {} ({} devices), {}\n", model.name, system.name, system.devices(), ToString(mapping));
  text += fmt::format(
      "step: {} ({} samples/s); compute {}, communication {}, exposed {} ({:.1f}% of the step, {:.0f}% "
      "overlapped)\n",
      FormatSeconds(e.seconds), FormatCount(e.samples_per_second), FormatSeconds(e.compute_seconds),
      FormatSeconds(e.communication_seconds), FormatSeconds(e.exposed_seconds),
      e.seconds > 0 ? 100 * e.exposed_seconds / e.seconds : 0.0, 100 * e.overlapped);
  text += "of which:";
  for (int w = 0; w < kWorkCount; ++w) {
    const double busy = e.trace.Busy(static_cast<Work>(w));
    if (busy > 0) text += fmt::format(" {} {}", kWorkNames[w], FormatSeconds(busy));
  }
  return text + fmt::format("\nmemory: {} of {} a device{}\n", FormatBytes(static_cast<int64_t>(e.memory_bytes)),
                            FormatBytes(static_cast<int64_t>(system.memory_bytes)),
                            e.fits                                 ? ""
                            : e.memory_bytes > system.memory_bytes ? ": does not fit"
                                                                   : ", but less than a sample for each");
}

}  // namespace penstock::cost
