#include "cost/layer_price.h"

#include <algorithm>

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

  Price Compute(double flops, double bytes, cluster::Operation kind) const {
    const auto& curve = q_.device.efficiency[static_cast<size_t>(kind)];
    const Price memory = MemoryBound(q_.device, bytes);
    const double compute =
        flops > 0 ? flops / (q_.device.flops(q_.arithmetic.precision) * curve(flops)) + q_.device.launch_seconds : 0;
    Price price = memory;
    if (compute > memory.seconds) price = {compute, !curve.InRange(flops)};
    return price;
  }

  void Add(const Operation& op) {
    const double moved = Moved(op), weights = Weights(op);
    const double read = weights * q_.arithmetic.weight_bytes;
    const double gradient = 2 * weights * q_.arithmetic.gradient_bytes;  // added to what is there
    switch (op.kind) {
      case OperationKind::gemm:
      case OperationKind::attention: {
        const bool weighted = op.kind == OperationKind::gemm;
        const Price forward = Compute(Flops(op), moved + read, Kind(op.kind));
        out_.forward += forward;
        if (q_.selective && op.selective) out_.backward_input += forward;
        if (op.input_gradient)
          out_.backward_input +=
              Compute((weighted ? 1 : 2) * Flops(op), op.backward_moved * moved + read, Kind(op.kind));
        if (weighted && op.weights > 0) out_.backward_weight += Compute(Flops(op), moved + gradient, Kind(op.kind));
        return;
      }
      case OperationKind::memory: {
        const Price forward = MemoryBound(q_.device, moved + read);
        out_.forward += forward;
        if (q_.selective && op.selective) out_.backward_input += forward;
        // Norms and tables have their gradients here: they are not deferred.
        out_.backward_input += MemoryBound(q_.device, op.backward_moved * moved + read);
        return;
      }
      case OperationKind::tensor_reduce: {
        if (q_.tensor == 1) return;
        const double bytes = static_cast<double>(op.moved(q_.samples, q_.length)) * q_.arithmetic.activation_bytes;
        const Price forward = AllReduce(q_.tensor_link, bytes);
        const Price backward = op.backward_moved > 0 ? AllReduce(q_.tensor_link, op.backward_moved * bytes) : Price{};
        out_.forward += forward;
        out_.backward_input += backward;
        out_.forward_reduce += forward;
        out_.backward_reduce += backward;
        return;
      }
    }
  }

  const model::LayerSpec& layer_;
  const LayerRequest& q_;
  LayerPrices out_;
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
