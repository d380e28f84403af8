#include "cost/layer_price.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::cost {

using model::Operation;
using model::OperationKind;
using model::TensorSplit;

namespace {

class Pricer {
 public:
  Pricer(const model::LayerSpec& layer, const LayerRequest& request) : layer_(layer), q_(request) {}

  LayerPrices Run() {
    double input_flops = 0;
    for (const Operation& op : layer_.operations) {
      if (op.kind == OperationKind::attention) input_flops += 2 * Flops(op);
      if (op.kind == OperationKind::gemm && op.input_gradient) input_flops += Flops(op);
      Add(op);
    }
    // What this project's own layers compute beyond the plain backward (logits again in the lean loss).
    const double more =
        static_cast<double>(layer_.input_flops(q_.samples, q_.length)) / static_cast<double>(q_.tensor) - input_flops;
    if (q_.arithmetic.own && more > 0 && !layer_.operations.empty())
      out_.backward_input += Compute(more, 0, Kind(OperationKind::gemm));
    return out_;
  }

 private:
  static cluster::Operation Kind(OperationKind kind) {
    return kind == OperationKind::attention ? cluster::Operation::attention : cluster::Operation::gemm;
  }
  double Share(const Operation& op) const {
    if (op.split == TensorSplit::split || q_.sequence_parallel) return 1.0 / static_cast<double>(q_.tensor);
    return 1;
  }
  double Flops(const Operation& op) const { return static_cast<double>(op.flops(q_.samples, q_.length)) * Share(op); }
  double Moved(const Operation& op) const {
    return static_cast<double>(op.moved(q_.samples, q_.length)) * Share(op) * q_.arithmetic.activation_bytes;
  }
  // Weights are split with the operation, but not along the sequence.
  double Weights(const Operation& op) const {
    return static_cast<double>(op.weights) / (op.split == TensorSplit::split ? static_cast<double>(q_.tensor) : 1.0);
  }

  // Inside a layer.
  Price Memory(double bytes) const {
    Price price = MemoryBound(q_.device, bytes);
    if (q_.device.layer_traffic > 0 && bytes > 0)
      price.seconds = q_.device.launch_seconds + q_.device.layer_traffic * (price.seconds - q_.device.launch_seconds);
    return price;
  }

  Price Compute(double flops, double bytes, cluster::Operation kind) const {
    const auto& curve = q_.device.efficiency[static_cast<size_t>(kind)];
    const Price memory = Memory(bytes);
    const double compute =
        flops > 0 ? flops / (q_.device.flops(q_.arithmetic.precision) * curve(flops)) + q_.device.launch_seconds : 0;
    // Products of activations reduce over a head's width only, a few steps of their inner loop: reading and writing do
    // not hide behind so short a loop.
    if (kind == cluster::Operation::attention && compute > 0)
      return {compute - q_.device.launch_seconds + memory.seconds, memory.extrapolated || !curve.InRange(flops)};
    Price price = memory;
    if (compute > memory.seconds) price = {compute, !curve.InRange(flops)};
    return price;
  }

  // The product, and the sum over micro-batches that its result is added to.
  Price WeightHalf(const Operation& op, double moved, double weights) const {
    const double read_and_written = 2 * weights * q_.arithmetic.gradient_bytes;
    if (q_.stack.fused_accumulation) return Compute(Flops(op), moved + read_and_written, Kind(op.kind));
    const double result = weights * q_.arithmetic.weight_bytes;
    return Compute(Flops(op), moved + result, Kind(op.kind)) + MemoryBound(q_.device, result + read_and_written);
  }

  // A sum over the tensor-parallel group: reduce-scatter and all-gather, apart under sequence parallelism, which keeps
  // only its share of the inputs of the products after the gather and gathers them once more in the backward.
  void Reduce(const Operation& op) {
    const double bytes = static_cast<double>(op.moved(q_.samples, q_.length)) * q_.arithmetic.activation_bytes;
    const double backward_bytes = op.backward_moved * bytes;
    const Price forward = AllReduce(q_.tensor_link, bytes);
    Price backward = backward_bytes > 0 ? AllReduce(q_.tensor_link, backward_bytes) : Price{};
    Price again;
    if (q_.sequence_parallel && backward_bytes > 0) again = AllGather(q_.tensor_link, backward_bytes);
    if (q_.stack.overlap_tensor && backward_bytes > 0) {
      // All products since the last sum but the one that is summed here; the head has but one.
      const auto windows = [](const std::vector<double>& halves) {
        const size_t used = halves.size() > 1 ? halves.size() - 1 : halves.size();
        return std::accumulate(halves.begin(), halves.begin() + static_cast<std::ptrdiff_t>(used), 0.0);
      };
      // Under sequence parallelism the gather of the summed product's gradient comes before anything it could hide in.
      const double beside_weight = q_.sequence_parallel ? backward.seconds / 2 : backward.seconds;
      out_.hidden_seconds +=
          Hidden(beside_weight, windows(weight_halves_)) + Hidden(again.seconds, windows(input_halves_));
    }
    backward += again;
    weight_halves_.clear();
    input_halves_.clear();
    out_.forward += forward;
    out_.backward_input += backward;
    out_.forward_reduce += forward;
    out_.backward_reduce += backward;
  }

  double Hidden(double seconds, double window) const { return (1 - q_.stack.overlap_cost) * std::min(seconds, window); }

  // Kernels that the stack runs beside.
  void AddPasses(const Operation& op) {
    const std::string_view name = op.name;
    const std::string_view last = name.substr(name.rfind('.') + 1);  // npos + 1 = 0
    for (const ExtraPasses& extra : q_.stack.passes) {
      if (extra.operation != name && extra.operation != last) continue;
      const Price forward = Memory(extra.forward * Moved(op));
      out_.forward += forward;
      out_.backward_input += Memory(extra.backward * Moved(op));
      if (q_.selective && op.selective) out_.backward_input += forward;
    }
  }

  void Add(const Operation& op) {
    AddPasses(op);
    const double moved = Moved(op), weights = Weights(op);
    const double read = weights * q_.arithmetic.weight_bytes;
    switch (op.kind) {
      case OperationKind::gemm:
      case OperationKind::attention: {
        const bool weighted = op.kind == OperationKind::gemm;
        const Price forward = Compute(Flops(op), moved + read, Kind(op.kind));
        out_.forward += forward;
        if (q_.selective && op.selective) out_.backward_input += forward;
        if (op.input_gradient) {
          const Price input = Compute((weighted ? 1 : 2) * Flops(op), op.backward_moved * moved + read, Kind(op.kind));
          out_.backward_input += input;
          if (weighted) input_halves_.push_back(input.seconds);
        }
        if (weighted && op.weights > 0) {
          const Price weight = WeightHalf(op, moved, weights);
          out_.backward_weight += weight;
          weight_halves_.push_back(weight.seconds);
        }
        return;
      }
      case OperationKind::memory: {
        const Price forward = Memory(moved + read);
        out_.forward += forward;
        if (q_.selective && op.selective) out_.backward_input += forward;
        // Norms and tables have their gradients here: they are not deferred.
        out_.backward_input += Memory(op.backward_moved * moved + read);
        return;
      }
      case OperationKind::tensor_reduce:
        if (q_.tensor > 1) Reduce(op);
        return;
    }
  }

  const model::LayerSpec& layer_;
  const LayerRequest& q_;
  LayerPrices out_;
  std::vector<double> input_halves_, weight_halves_;  // seconds of the products since the last sum
};

}  // namespace

Price MemoryBound(const cluster::Device& device, double bytes) {
  if (bytes <= 0) return {};
  const auto& curve = device.efficiency[static_cast<size_t>(cluster::Operation::memory)];
  PENSTOCK_CHECK(device.memory_bytes_per_second > 0, "device '{}' has no memory bandwidth", device.name);
  return {device.launch_seconds + bytes / (device.memory_bytes_per_second * curve(bytes)), !curve.InRange(bytes)};
}

LayerPrices PriceLayer(const model::LayerSpec& layer, const LayerRequest& request) {
  PENSTOCK_CHECK(!layer.operations.empty(), "layer '{}' lists no operations", layer.path);
  return Pricer(layer, request).Run();
}

}  // namespace penstock::cost
