#include "model/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"

namespace penstock::model {
namespace {

// A processor that multiplies at F flops/s reads memory at about F / 4 bytes/s (measured on server CPUs and GPUs alike
// within a factor of 4): enough to keep an embedding or a norm from counting as nothing.
constexpr double kFlopsPerByte = 4.0;

struct Chain {
  int layers;
  int before;  // layers before the first repeated one
  int repeated;
};

Chain Look(const ModelSpec& spec) {
  const int layers = static_cast<int>(spec.layers.size());
  const auto is_repeated = [](const LayerSpec& layer) { return layer.repeated; };
  const auto first = std::find_if(spec.layers.begin(), spec.layers.end(), is_repeated);
  const auto last = std::find_if_not(first, spec.layers.end(), is_repeated);
  if (first == spec.layers.end()) return {layers, 0, layers};  // all layers differ: each counts
  PENSTOCK_CHECK(std::none_of(last, spec.layers.end(), is_repeated), "repeated layers are not in one run");
  return {layers, static_cast<int>(first - spec.layers.begin()), static_cast<int>(last - first)};
}

void RequireStages(const ModelSpec& spec, int stages) {
  const int layers = static_cast<int>(spec.layers.size());
  if (stages < 1) throw UserError("{} stages: there must be at least 1", stages);
  if (stages > layers) {
    const Chain chain = Look(spec);
    throw UserError("{} stages need at least {} layers, the model has {} ({} of them repeated); at most {} stages work",
                    stages, stages, layers, chain.repeated, layers);
  }
}

Partition FromCounts(const ModelSpec& spec, std::span<const int> counts) {
  const Chain chain = Look(spec);
  const int stages = static_cast<int>(counts.size());
  Partition partition;
  partition.first.push_back(0);
  int next = chain.before;
  for (int s = 0; s < stages; ++s) {
    next += counts[s];
    partition.first.push_back(s + 1 == stages ? chain.layers : next);
  }
  CheckPartition(spec, partition);
  return partition;
}

// "embed", "blocks.3", "blocks 0-6".
std::string RunName(const ModelSpec& spec, int begin, int end) {
  const std::string& first = spec.layers[begin].path;
  if (end == begin + 1) return first;
  const std::string& last = spec.layers[end - 1].path;
  const size_t dot = first.rfind('.');
  return fmt::format("{} {}-{}", first.substr(0, dot), first.substr(dot + 1), last.substr(last.rfind('.') + 1));
}

std::vector<int> ParseCounts(std::string_view text) {
  std::vector<int> counts;
  size_t begin = 0;
  while (true) {
    const size_t end = std::min(text.find(',', begin), text.size());
    std::string word(text.substr(begin, end - begin));
    std::erase(word, ' ');
    if (word.empty() || word.size() > 6 || word.find_first_not_of("0123456789") != std::string::npos)
      throw UserError(
          "parallel.stages = \"{}\": use even, balanced, or the number of blocks of each stage, such as 3,3,2", text);
    counts.push_back(std::stoi(word));
    if (end == text.size()) return counts;
    begin = end + 1;
  }
}

}  // namespace

Partition PartitionEven(const ModelSpec& spec, int stages) {
  RequireStages(spec, stages);
  const Chain chain = Look(spec);
  const int spare = std::max(0, stages - chain.repeated);  // stages without a repeated layer
  const int after = chain.layers - chain.before - chain.repeated;
  const int own_after = std::min(spare, after);  // the head first: it is the heavier end
  const int own_before = spare - own_after;
  const int middle = stages - spare;
  std::vector<int> sizes;
  for (int i = 0; i < own_before; ++i) sizes.push_back(1);
  for (int i = 0; i < middle; ++i) sizes.push_back(chain.repeated / middle + (i < chain.repeated % middle ? 1 : 0));
  for (int i = 0; i < own_after; ++i) sizes.push_back(1);
  // Layers before and after that have no stage of their own join the first and the last.
  sizes.front() += chain.before - own_before;
  sizes.back() += after - own_after;
  Partition partition;
  partition.first.push_back(0);
  for (const int size : sizes) partition.first.push_back(partition.first.back() + size);
  CheckPartition(spec, partition);
  return partition;
}

Partition PartitionBalanced(const ModelSpec& spec, std::span<const double> cost, int stages) {
  RequireStages(spec, stages);
  const int layers = static_cast<int>(spec.layers.size());
  PENSTOCK_CHECK_EQ(static_cast<int>(cost.size()), layers);
  std::vector<double> prefix(layers + 1, 0.0);
  for (int i = 0; i < layers; ++i) prefix[i + 1] = prefix[i] + cost[i];

  // best[k][i] over all ways to make k stages of layers [i, layers): first the smallest maximum, then, among cuts that
  // keep to it, the smallest sum of squares (with one dominant stage the maximum alone says nothing about the others).
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best;
  std::vector<std::vector<int>> cut;
  const auto solve = [&](auto&& price, auto&& join) {
    best.assign(stages + 1, std::vector<double>(layers + 1, infinity));
    cut.assign(stages + 1, std::vector<int>(layers + 1, layers));
    for (int i = 0; i < layers; ++i) best[1][i] = price(prefix[layers] - prefix[i]);
    for (int k = 2; k <= stages; ++k)
      for (int i = 0; i + k <= layers; ++i)
        for (int j = i + 1; j + (k - 1) <= layers; ++j) {
          const double total = join(price(prefix[j] - prefix[i]), best[k - 1][j]);
          if (total < best[k][i]) {
            best[k][i] = total;
            cut[k][i] = j;
          }
        }
    return best[stages][0];
  };
  const double smallest = solve([](double x) { return x; }, [](double a, double b) { return std::max(a, b); });
  const double limit = smallest * (1 + 1e-12);  // sums of doubles
  solve([&](double x) { return x > limit ? infinity : x * x; }, [](double a, double b) { return a + b; });
  Partition partition;
  partition.first.push_back(0);
  for (int k = stages; k >= 1; --k) partition.first.push_back(cut[k][partition.first.back()]);
  CheckPartition(spec, partition);
  return partition;
}

Partition PartitionExplicit(const ModelSpec& spec, std::span<const int> repeated) {
  const Chain chain = Look(spec);
  RequireStages(spec, static_cast<int>(repeated.size()));
  const int sum = std::accumulate(repeated.begin(), repeated.end(), 0);
  if (sum != chain.repeated)
    throw UserError("partition {}: these are {} layers, the model has {}", fmt::join(repeated, ","), sum,
                    chain.repeated);
  for (size_t s = 0; s < repeated.size(); ++s) {
    const bool has_end =
        (s == 0 && chain.before > 0) || (s + 1 == repeated.size() && chain.before + chain.repeated < chain.layers);
    if (repeated[s] < 0 || (repeated[s] == 0 && !has_end))
      throw UserError("partition {}: stage {} would be empty", fmt::join(repeated, ","), s);
  }
  return FromCounts(spec, repeated);
}

std::vector<double> LayerCosts(const ModelSpec& spec, int64_t batch, int64_t length) {
  std::vector<double> costs;
  for (const LayerSpec& layer : spec.layers) {
    const int64_t flops =
        layer.forward_flops(batch, length) + layer.input_flops(batch, length) + layer.weight_flops(batch, length);
    const int64_t bytes =
        3 * (SavedBytes(layer, batch, length, Precision::fp32) + BoundaryBytes(layer, batch, length, Precision::fp32));
    costs.push_back(static_cast<double>(flops) + kFlopsPerByte * static_cast<double>(bytes));
  }
  return costs;
}

Partition MakePartition(const ModelSpec& spec, std::string_view text, int stages) {
  if (text == "even") return PartitionEven(spec, stages);
  if (text == "balanced") return PartitionBalanced(spec, LayerCosts(spec, 1, spec.context), stages);
  const std::vector<int> counts = ParseCounts(text);
  if (static_cast<int>(counts.size()) != stages)
    throw UserError("parallel.stages = \"{}\" names {} stages, the plan has {} (parallel.pipeline x parallel.chunks)",
                    text, counts.size(), stages);
  return PartitionExplicit(spec, counts);
}

std::string ExplainPartition(const ModelSpec& spec, const Partition& partition) {
  CheckPartition(spec, partition);
  const std::vector<double> costs = LayerCosts(spec, 1, spec.context);
  const double total = std::accumulate(costs.begin(), costs.end(), 0.0);
  std::string text;
  for (int s = 0; s < partition.stages(); ++s) {
    std::vector<std::string> parts;
    std::set<int> parameters;
    double cost = 0;
    for (int i = partition.first[s], end; i < partition.first[s + 1]; i = end) {
      end = i + 1;
      while (spec.layers[i].repeated && end < partition.first[s + 1] && spec.layers[end].repeated) ++end;
      parts.push_back(RunName(spec, i, end));
      for (int j = i; j < end; ++j) {
        cost += costs[j];
        parameters.insert(spec.layers[j].parameters.begin(), spec.layers[j].parameters.end());
      }
    }
    int64_t elements = 0;
    for (const int p : parameters) elements += spec.parameters[p].numel();
    text += fmt::format("stage {}: {} ({} parameters, {:.1f} % of the work)\n", s, fmt::join(parts, " + "), elements,
                        100.0 * cost / total);
  }
  text += fmt::format("in all {} layers, {} parameters\n", spec.layers.size(), spec.parameter_count());
  return text;
}

void CheckPartition(const ModelSpec& spec, const Partition& partition) {
  PENSTOCK_CHECK(partition.stages() >= 1);
  PENSTOCK_CHECK_EQ(partition.first.front(), 0);
  PENSTOCK_CHECK_EQ(partition.first.back(), static_cast<int>(spec.layers.size()));
  for (int s = 0; s < partition.stages(); ++s)
    PENSTOCK_CHECK(partition.first[s] < partition.first[s + 1], "stage {} is empty", s);
}

}  // namespace penstock::model
