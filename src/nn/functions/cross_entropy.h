// Language-model head and loss in one, a few rows of logits at a time: the logits of a micro-batch never exist.
//
// Forward walks chunks of `chunk` tokens: logits = x W^T, log-sum-exp, loss of each token. Kept: the operand of x, W as
// the leaf, labels, log-sum-exp. Backward computes each chunk's logits again (the same call), turns them into
// (softmax - onehot) * grad_output, and adds up dX and dW; both in the input half, since dW alone would need the logits
// a third time. Workspace: chunk * vocabulary elements.
#pragma once

#include <ATen/core/Tensor.h>

#include "model/precision.h"

namespace penstock::nn {

// x [.., hidden], weight [vocabulary, hidden], labels [..] int64. Returns a fp64 scalar: the sum over tokens with a
// label other than kIgnoredLabel, accumulated in fp64 in token order (docs/numerics.md R10). Without such tokens 0,
// with zero gradients. InternalError for a label outside the vocabulary.
at::Tensor LinearCrossEntropySum(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& labels, int64_t chunk,
                                 model::Precision precision);

}  // namespace penstock::nn
