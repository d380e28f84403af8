#include "model/build/operations.h"

#include <utility>

#include "model/build/spec_writer.h"

namespace penstock::model {

Operation Gemm(std::string name, SizeFormula rows, int64_t in, int64_t out, bool bias, TensorSplit split) {
  return {.name = std::move(name),
          .kind = OperationKind::gemm,
          .flops = 2 * in * out * rows,
          .moved = (in + out) * rows,
          .weights = in * out + (bias ? out : 0),
          .split = split};
}

Operation Moving(std::string name, SizeFormula moved, double backward_moved, TensorSplit split, int64_t weights) {
  return {.name = std::move(name),
          .kind = OperationKind::memory,
          .moved = moved,
          .weights = weights,
          .backward_moved = backward_moved,
          .split = split};
}

Operation TensorReduce(std::string name, SizeFormula moved, double backward_moved) {
  return {.name = std::move(name),
          .kind = OperationKind::tensor_reduce,
          .moved = moved,
          .backward_moved = backward_moved,
          .split = TensorSplit::replicated};
}

Operation NormOperation(std::string name, int64_t hidden, bool bias) {
  return Moving(std::move(name), PerToken(2 * hidden), 1.5, TensorSplit::replicated, bias ? 2 * hidden : hidden);
}

Operation ResidualOperation(std::string name, int64_t hidden, bool dropout) {
  return Moving(std::move(name), PerToken(3 * hidden), dropout ? 5.0 / 3 : 1, TensorSplit::replicated);
}

void AddAttentionCore(std::vector<Operation>& operations, const AttentionCore& core) {
  const SizeFormula product = PerPair(2 * core.hidden), scores = PerPair(core.heads);
  const size_t first = operations.size();
  if (core.fused) {
    operations.push_back({.name = "attn.core",
                          .kind = OperationKind::attention,
                          .flops = 2 * product,
                          .moved = PerToken(4 * core.hidden),
                          .backward_moved = 2});
  } else {
    // A backward product per factor, each as wide as the forward's.
    operations.push_back({.name = "attn.scores",
                          .kind = OperationKind::attention,
                          .flops = product,
                          .moved = PerToken(2 * core.hidden) + scores,
                          .backward_moved = 2});
    operations.push_back(Moving("attn.softmax", 2 * scores, 1.5, TensorSplit::split));
    if (core.dropout) operations.push_back(Moving("attn.dropout", 2 * scores, 1, TensorSplit::split));
    operations.push_back({.name = "attn.values",
                          .kind = OperationKind::attention,
                          .flops = product,
                          .moved = PerToken(2 * core.hidden) + scores,
                          .backward_moved = 2});
  }
  for (size_t i = first; i < operations.size(); ++i) operations[i].selective = true;
}

SizeFormula ForwardFlops(const std::vector<Operation>& operations) {
  SizeFormula sum;
  for (const Operation& operation : operations) sum = sum + operation.flops;
  return sum;
}

SizeFormula InputFlops(const std::vector<Operation>& operations) {
  SizeFormula sum;
  for (const Operation& operation : operations) {
    if (operation.kind == OperationKind::attention) sum = sum + 2 * operation.flops;
    if (operation.kind == OperationKind::gemm && operation.input_gradient) sum = sum + operation.flops;
  }
  return sum;
}

SizeFormula WeightFlops(const std::vector<Operation>& operations) {
  SizeFormula sum;
  for (const Operation& operation : operations)
    if (operation.kind == OperationKind::gemm) sum = sum + operation.flops;
  return sum;
}

void CountFlops(LayerSpec& layer) {
  layer.forward_flops = ForwardFlops(layer.operations);
  layer.input_flops = InputFlops(layer.operations);
  layer.weight_flops = WeightFlops(layer.operations);
}

}  // namespace penstock::model
