#include "cost/plan_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "cost/layer_price.h"
#include "cost/operator_price.h"
#include "schedule/operators.h"

namespace penstock::cost {

using schedule::Action;
using schedule::Kind;

namespace {

void HashFormula(Hasher& hasher, const model::SizeFormula& f) {
  hasher.Update(static_cast<uint64_t>(f.per_sample));
  hasher.Update(static_cast<uint64_t>(f.per_token));
  hasher.Update(static_cast<uint64_t>(f.per_token_pair));
}

}  // namespace

std::string LayerSubject(const model::ModelSpec& spec, int layer) {
  const model::LayerSpec& l = spec.layers[layer];
  Hasher hasher;
  hasher.Update(spec.family);
  for (const int p : l.parameters)
    for (const int64_t extent : spec.parameters[p].shape) hasher.Update(static_cast<uint64_t>(extent));
  for (const model::SizeFormula& f : {l.forward_flops, l.input_flops, l.weight_flops, l.saved, l.saved_operands})
    HashFormula(hasher, f);
  for (const model::Operation& op : l.operations) {
    hasher.Update(op.name);
    HashFormula(hasher, op.moved);
  }
  return fmt::format("{}.{}.{}", spec.family, l.kind, hasher.Digest().Hex().substr(0, 12));
}

std::string PrecisionSubject(std::string_view precision, int threads) {
  return threads > 1 ? fmt::format("{}.{}t", precision, threads) : std::string(precision);
}

int RanksAtOnce(int64_t ranks, int64_t cores, int threads) {
  const int64_t seats = cores > 0 ? std::max<int64_t>(1, cores / std::max(1, threads)) : ranks;
  return static_cast<int>(std::max<int64_t>(1, std::min(ranks, seats)));
}

PlanCosts::PlanCosts(const CostRequest& request)
    : request_(request), precision_(PrecisionSubject(request.arithmetic.precision, request.threads)) {
  PENSTOCK_CHECK_EQ(request.units.size(), request.schedule.holders.units.size());
  PENSTOCK_CHECK_EQ(request.partition.stages(), request.schedule.num_stages());
  FindDevices();
  FindGroups();
  // Devices with memory of their own do not slow each other; the nodes of a machine with cores are full.
  const Placement& placement = request.placement;
  if (const int64_t cores = placement.cluster().devices[0].cores; cores > 0)
    ranks_at_once_ =
        RanksAtOnce(std::min(placement.num_devices(), placement.devices_per_machine()), cores, request.threads);
  PriceStages();
  for (int k = 0; k < schedule::kKindCount; ++k)
    if (const auto measured = Measured(fmt::format("action:{}", schedule::kKindNames[k]), 1)) overhead_[k] = *measured;
  if (const auto measured = Measured("step", 1)) step_overhead_ = measured->seconds;
  // Boundaries over a link of each level.
  for (const cluster::Level& level : request_.placement.cluster().levels) {
    auto& row = sends_.emplace_back();
    for (size_t edge = 0; edge < request_.schedule.graph.edges().size(); ++edge) {
      const double bytes =
          static_cast<double>(EdgeElements(static_cast<int>(edge))) * request_.arithmetic.boundary_bytes;
      const cluster::Link& link = level.link;
      row.push_back({link.bytes_per_second > 0 ? link.Seconds(bytes) - link.latency_seconds : 0,
                     link.bytes_per_second > 0 && !link.efficiency.InRange(bytes)});
    }
  }
}

std::optional<Price> PlanCosts::Measured(const std::string& subject, double size) const {
  if (request_.profile == nullptr) return std::nullopt;
  const auto answer = request_.profile->Find(subject, size, ranks_at_once_);
  if (!answer) return std::nullopt;
  return Price{answer->seconds, answer->extrapolated};
}

void PlanCosts::FindDevices() {
  for (int rank = 0; rank < request_.schedule.num_ranks(); ++rank) {
    const RankType type{&request_.placement.DeviceTypeOf(rank), request_.placement.CellLink(rank)};
    const auto it = std::find(types_.begin(), types_.end(), type);
    type_of_.push_back(static_cast<int>(it - types_.begin()));
    if (it == types_.end()) types_.push_back(type);
  }
}

void PlanCosts::FindGroups() {
  const int64_t positions = request_.placement.pipeline();
  for (const auto& group : request_.schedule.groups) {
    std::vector<int64_t> devices;
    for (int64_t copy = 0; copy < request_.schedule.copies; ++copy)
      for (const int32_t rank : group) devices.push_back(request_.placement.DeviceOf(copy * positions + rank));
    std::sort(devices.begin(), devices.end());
    groups_.push_back(devices.empty() ? GroupLink{} : LinkOfGroup(request_.placement.cluster(), devices));
  }
}

void PlanCosts::PriceStages() {
  for (const RankType& type : types_) {
    const LayerRequest layer_request{.device = *type.device,
                                     .arithmetic = request_.arithmetic,
                                     .samples = request_.samples,
                                     .length = request_.length,
                                     .tensor = request_.placement.tensor(),
                                     .sequence_parallel = request_.sequence_parallel,
                                     .selective = request_.selective,
                                     .tensor_link = type.tensor_link,
                                     .stack = request_.stack};
    // Layers that are alike have one price.
    std::map<std::string, StagePrices> known;
    auto& row = stages_.emplace_back();
    for (int stage = 0; stage < request_.partition.stages(); ++stage) {
      StagePrices sum;
      for (int l = request_.partition.first[stage]; l < request_.partition.first[stage + 1]; ++l) {
        const auto [it, is_new] = known.try_emplace(LayerSubject(request_.spec, l));
        if (is_new) it->second = PriceOfLayer(l, PriceLayer(request_.spec.layers[l], layer_request));
        sum.forward += it->second.forward;
        sum.backward += it->second.backward;
        sum.backward_input += it->second.backward_input;
        sum.backward_weight += it->second.backward_weight;
      }
      row.push_back(sum);
    }
  }
}

std::optional<Price> PlanCosts::MeasuredLayer(int layer, std::string_view kind) const {
  if (request_.placement.tensor() > 1) return std::nullopt;  // profiles are of whole layers
  return Measured(
      fmt::format("layer:{}:{}:{}:{}", LayerSubject(request_.spec, layer), kind, precision_, request_.length),
      static_cast<double>(request_.samples));
}

// A backward that was measured whole gives its halves in the proportion that was computed, and the reverse.
PlanCosts::StagePrices PlanCosts::PriceOfLayer(int layer, const LayerPrices& computed) {
  StagePrices prices{computed.forward, computed.backward_input + computed.backward_weight, computed.backward_input,
                     computed.backward_weight};
  prices.backward.seconds -= computed.hidden_seconds;
  const auto take = [this](Price& price, const std::optional<Price>& measured) {
    ++(measured ? measured_ : computed_);
    if (measured) price = *measured;
  };
  take(prices.forward, MeasuredLayer(layer, "forward"));
  const auto whole = MeasuredLayer(layer, "backward");
  const auto input = MeasuredLayer(layer, "backward_input"), weight = MeasuredLayer(layer, "backward_weight");
  if (whole) {
    const double seconds = computed.backward_input.seconds + computed.backward_weight.seconds;
    const double share = seconds > 0 ? computed.backward_input.seconds / seconds : 1;
    prices.backward_input = share * *whole;
    prices.backward_weight = (1 - share) * *whole;
  }
  if (input) prices.backward_input = *input;
  if (weight) prices.backward_weight = *weight;
  if (input && !whole) prices.backward = prices.backward_input + (weight ? *weight : Price{});
  take(prices.backward, whole ? whole : input ? std::optional(prices.backward) : std::nullopt);
  return prices;
}

int64_t PlanCosts::elements(int unit) const {
  const int64_t tensor = request_.placement.tensor();
  return (request_.units[unit].numel + tensor - 1) / tensor;
}

int64_t PlanCosts::EdgeElements(int edge) const {
  const int stage = request_.schedule.graph.edges()[edge].from;
  int64_t elements = 0;
  for (const model::BoundaryTensor& tensor : request_.spec.layers[request_.partition.first[stage + 1] - 1].boundary)
    elements += tensor.numel(request_.samples, request_.length);
  // Each member of the cell sends its share to its counterpart (the scatter-gather of Narayanan et al. 2021).
  return (elements + request_.placement.tensor() - 1) / request_.placement.tensor();
}

Price PlanCosts::Transfer(int from_rank, int to_rank, int edge) const {
  const cluster::Cluster& cluster = request_.placement.cluster();
  const int64_t from = request_.placement.DeviceOf(from_rank), to = request_.placement.DeviceOf(to_rank);
  if (cluster.overrides.empty()) {
    const int level = cluster.LevelBetween(from, to);
    return level < 0 ? Price{} : sends_[level].at(static_cast<size_t>(edge));
  }
  const cluster::Link& link = cluster.LinkBetween(from, to);
  if (link.bytes_per_second <= 0) return {};
  const double bytes = static_cast<double>(EdgeElements(edge)) * request_.arithmetic.boundary_bytes;
  return {link.Seconds(bytes) - link.latency_seconds, !link.efficiency.InRange(bytes)};
}

Price PlanCosts::PriceSend(int rank, const Action& action) const {
  // Its rank has waited for it: OwnSends.
  if (request_.stack.waits_for_sends) return {};
  return Transfer(rank, action.peer_or_group, action.key.part);
}

Price PlanCosts::OwnSends(int rank, const Action& compute) const {
  Price price;
  if (!request_.stack.waits_for_sends) return price;
  const schedule::Schedule& s = request_.schedule;
  const int stage = compute.key.unit.stage;
  const bool forward = compute.key.kind == Kind::forward;
  for (const int edge : forward ? s.graph.outputs(stage) : s.graph.inputs(stage)) {
    const int other = forward ? s.graph.edges()[edge].to : s.graph.edges()[edge].from;
    const int peer = s.route.rank_of(other, compute.key.micro_batch);
    if (peer == rank) continue;
    price += Transfer(rank, peer, edge);
    price.seconds += LatencyBetween(rank, peer);
  }
  return price;
}

double PlanCosts::BackwardSeconds(int rank, int stage) const { return stages_[type_of_[rank]][stage].backward.seconds; }

Price PlanCosts::GatherBoundary(int rank, int edge) const {
  const int64_t tensor = request_.placement.tensor();
  if (!request_.stack.gather_boundary || request_.sequence_parallel || tensor == 1) return {};
  const double bytes = static_cast<double>(EdgeElements(edge) * tensor) * request_.arithmetic.boundary_bytes;
  return AllGather(types_[type_of_[rank]].tensor_link, bytes);
}

Price PlanCosts::PriceOperator(int rank, const Action& action) const {
  const OperatorPrice& price = Registry<OperatorPrice>::Find(schedule::OpName(action.key.op));
  return price.price(*this, rank, action);
}

Price PlanCosts::PriceOf(int rank, const Action& action) const {
  const auto stage = [&]() -> const StagePrices& { return stages_[type_of_[rank]][action.key.unit.stage]; };
  const Price& overhead = overhead_[static_cast<size_t>(action.key.kind)];
  switch (action.key.kind) {
    case Kind::forward:
      return stage().forward + OwnSends(rank, action) + overhead;
    case Kind::recompute:
      return stage().forward + overhead;
    case Kind::backward:
      return stage().backward + OwnSends(rank, action) + overhead;
    case Kind::backward_input:
      return stage().backward_input + OwnSends(rank, action) + overhead;
    case Kind::backward_weight:
      return stage().backward_weight + overhead;
    case Kind::update: {
      const auto n = static_cast<double>(elements(action.key.unit.stage));
      const Arithmetic& a = request_.arithmetic;
      if (n == 0) return overhead;
      if (const auto measured = Measured(fmt::format("update:{}:{}", request_.optimizer, precision_), n))
        return *measured + overhead;
      // Gradient read; master (or only) copy and states read and written; the narrow copy written.
      const double copy = a.master_bytes > 0 ? a.master_bytes : a.weight_bytes;
      const double bytes = n * (a.gradient_bytes + 2 * copy + 2 * request_.optimizer_states * a.state_bytes +
                                (a.master_bytes > 0 ? a.weight_bytes : 0));
      return MemoryBound(device(rank), bytes + n * request_.stack.update_bytes) + overhead;
    }
    case Kind::send:
      return PriceSend(rank, action) + overhead;
    case Kind::recv:
    case Kind::collective:
    case Kind::check:
    case Kind::task:
    case Kind::copy:
      return PriceOperator(rank, action) + overhead;
  }
  return {};
}

double PlanCosts::Duration(const schedule::Schedule&, int rank, const Action& action) const {
  return PriceOf(rank, action).seconds;
}

bool PlanCosts::Extrapolated(const schedule::Schedule&, int rank, const Action& action) const {
  return PriceOf(rank, action).extrapolated;
}

double PlanCosts::LatencyBetween(int from, int to) const {
  const int64_t a = request_.placement.DeviceOf(from), b = request_.placement.DeviceOf(to);
  return a == b ? 0 : request_.placement.cluster().LinkBetween(a, b).latency_seconds;
}

double PlanCosts::Latency(const schedule::Schedule&, int from, int to, const Action&) const {
  return request_.stack.waits_for_sends ? 0 : LatencyBetween(from, to);
}

}  // namespace penstock::cost
