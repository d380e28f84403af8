// src/model/build/operations.h
//
// The operations that families are described with (model/operation.h), and what their backward costs. How traffic is
// counted, per element of the tensor named:
//   norm                 forward reads x, writes y; backward reads x and dy, writes dx
//   activation           the same; the bias before it is in the epilogue of the product
//   residual             forward reads branch and sum, writes sum; backward adds the two gradients that meet where the
//                        branch left (2 reads, 1 write), and with dropout masks one of them (1 read, 1 write)
//   products             read both factors, write the result; both halves of a backward move as much
//   attention, fused     q, k, v in, result out; backward reads those and the gradient, writes three
//   attention, reference every step writes its length x length scores and the next reads them
// Dropout masks are not counted: they are a byte or a recomputed random number beside elements.
#pragma once

#include <string>
#include <vector>

#include "model/spec.h"

namespace penstock::model {

// Product of `rows` rows (PerToken(1): one per token) with a weight [out, in].
Operation Gemm(std::string name, SizeFormula rows, int64_t in, int64_t out, bool bias,
               TensorSplit split = TensorSplit::split);
Operation Moving(std::string name, SizeFormula moved, double backward_moved, TensorSplit split, int64_t weights = 0);
// `backward_moved`: messages of the backward, as a multiple of those of the forward.
Operation TensorReduce(std::string name, SizeFormula moved, double backward_moved = 1);

Operation NormOperation(std::string name, int64_t hidden, bool bias);
Operation ResidualOperation(std::string name, int64_t hidden, bool dropout);

struct AttentionCore {
  int64_t hidden = 0;
  int64_t heads = 0;
  bool fused = true;
  bool dropout = false;  // on probabilities; reference only
};
// Products, softmax and dropout between the projections: all heads split, all selective.
void AddAttentionCore(std::vector<Operation>& operations, const AttentionCore& core);

SizeFormula ForwardFlops(const std::vector<Operation>& operations);
SizeFormula InputFlops(const std::vector<Operation>& operations);
SizeFormula WeightFlops(const std::vector<Operation>& operations);

// Sets the three flops of a layer from its operations.
void CountFlops(LayerSpec& layer);

}  // namespace penstock::model
