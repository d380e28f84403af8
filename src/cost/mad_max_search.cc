#include "cost/mad_max_search.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"

namespace penstock::cost {
namespace {

std::vector<int64_t> InnerDegrees(const MadMaxSystem& system, const MadMaxSpace& space) {
  const int64_t devices = system.devices();
  std::vector<int64_t> degrees;
  if (space.degree_splits) {
    for (int64_t d = 2; d < devices; ++d)
      if (devices % d == 0) degrees.push_back(d);
    return degrees;
  }
  int64_t group = 1;
  for (const MadMaxLevel& level : system.levels) {
    group *= level.devices;
    if (group > 1 && group < devices && (degrees.empty() || degrees.back() != group)) degrees.push_back(group);
  }
  return degrees;
}

}  // namespace

std::vector<Strategy> StrategiesOf(const MadMaxLayer& layer, const MadMaxSystem& system, const MadMaxSpace& space) {
  const int64_t devices = system.devices();
  const std::vector<Split> inner =
      layer.lookup ? std::vector{Split::mp, Split::ddp} : std::vector{Split::fsdp, Split::ddp, Split::tp};
  const auto allowed = [&](Split split, int64_t degree) {
    return split != Split::tp || degree <= space.max_tensor_degree;
  };
  std::vector<Strategy> all;
  for (const Split split : inner)
    if (allowed(split, devices)) all.push_back({{split, devices}});
  for (const int64_t degree : InnerDegrees(system, space))
    for (const Split first : inner)
      for (const Split second : inner) {
        if (second == first || second == Split::fsdp) continue;
        if (allowed(first, degree) && allowed(second, devices / degree))
          all.push_back({{first, degree}, {second, devices / degree}});
      }
  return all;
}

MadMaxSearchResult SearchMadMax(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                                const MadMaxSpace& space) {
  std::vector<std::pair<std::string, std::vector<Strategy>>> choices;
  double points = 1;
  for (const MadMaxLayer& layer : model.layers) {
    const auto known = std::find_if(choices.begin(), choices.end(),
                                    [&](const auto& choice) { return choice.first == layer.layer_class; });
    if (known != choices.end()) continue;
    const auto fixed = space.fixed.find(layer.layer_class);
    if (fixed != space.fixed.end()) {
      choices.emplace_back(layer.layer_class, std::vector<Strategy>(1, fixed->second));
    } else {
      choices.emplace_back(layer.layer_class, StrategiesOf(layer, system, space));
    }
    points *= static_cast<double>(choices.back().second.size());
  }
  if (points > static_cast<double>(space.max_points))
    throw UserError(
        "the search has {:.0f} points, more than the {} allowed; fix the strategy of a class, or leave degree "
        "splits out",
        points, space.max_points);
  MadMaxSearchResult best;
  std::vector<size_t> at(choices.size(), 0);
  for (bool more = points > 0; more;) {
    Mapping mapping;
    for (size_t c = 0; c < choices.size(); ++c) mapping[choices[c].first] = choices[c].second[at[c]];
    ++best.evaluated;
    if (MadMaxMemory(model, system, task, mapping) <= system.memory_bytes) {
      MadMaxEstimate e = EstimateMadMax(model, system, task, mapping);
      best.feasible += e.fits;
      if (e.fits && (!best.found || e.samples_per_second > best.estimate.samples_per_second)) {
        best.found = true;
        best.mapping = std::move(mapping);
        best.estimate = std::move(e);
      }
    }
    more = false;
    for (size_t c = choices.size(); c-- > 0 && !more;) {
      more = ++at[c] < choices[c].second.size();
      if (!more) at[c] = 0;
    }
  }
  return best;
}

MadMaxSystem Scaled(MadMaxSystem system, MadMaxResource resource, double factor) {
  const auto is = [resource](MadMaxResource r) { return resource == r || resource == MadMaxResource::all; };
  if (is(MadMaxResource::flops)) system.flops_per_second *= factor;
  if (is(MadMaxResource::memory_bandwidth)) system.memory_bytes_per_second *= factor;
  if (is(MadMaxResource::memory_capacity)) system.memory_bytes *= factor;
  for (size_t l = 0; l < system.levels.size(); ++l)
    if (is(l == 0 ? MadMaxResource::inside_bandwidth : MadMaxResource::between_bandwidth))
      system.levels[l].bytes_per_second *= factor;
  return system;
}

std::vector<MadMaxWhatIf> WhatIfMadMax(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                                       double factor, const MadMaxSpace& space) {
  const MadMaxSearchResult now = SearchMadMax(model, system, task, space);
  std::vector<MadMaxWhatIf> rows;
  for (size_t r = 0; r < kMadMaxResourceNames.size(); ++r) {
    MadMaxWhatIf row;
    row.resource = static_cast<MadMaxResource>(r);
    row.best = SearchMadMax(model, Scaled(system, row.resource, factor), task, space);
    if (now.found && row.best.found) row.gain = row.best.estimate.samples_per_second / now.estimate.samples_per_second;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string Explain(const MadMaxModel& model, const MadMaxSystem& system, const MadMaxTask& task,
                    const MadMaxSearchResult& result) {
  if (!result.found) return fmt::format("none of {} strategies fits into memory\n", result.evaluated);
  std::string text = fmt::format("best of {} strategies ({} fit):\n", result.evaluated, result.feasible) +
                     Explain(model, system, result.mapping, result.estimate);
  const MadMaxEstimate flat = EstimateMadMax(model, system, task, FlatMapping(model, system));
  return text + fmt::format("flat sharding over all devices: {} samples/s{}; the best gives {:.2f}x\n",
                            FormatCount(flat.samples_per_second), flat.fits ? "" : " (does not fit)",
                            result.estimate.samples_per_second / flat.samples_per_second);
}

std::string Explain(const std::vector<MadMaxWhatIf>& rows, double factor) {
  std::string text;
  for (const MadMaxWhatIf& row : rows)
    text += row.gain > 0 ? fmt::format("{:.2g}x {}: {:.2f}x samples/s with {}\n", factor, Name(row.resource), row.gain,
                                       ToString(row.best.mapping))
                         : fmt::format("{:.2g}x {}: no comparison, nothing fits\n", factor, Name(row.resource));
  return text;
}

}  // namespace penstock::cost
