// src/nn/deferred.h
//
// Split backward (Qi et al., "Zero bubble pipeline parallelism", 2023): the backward of a stage runs with the weight
// halves of its Linears set aside; they are computed later by the same GEMM calls on the same operands, so the bits
// equal those of the full backward (docs/numerics.md R7).
//
//   DeferredGrads deferred;                            // one per (stage, micro-batch), kept until its weight half
//   {
//     DeferredGrads::Scope scope(deferred);            // this thread's backward now defers
//     leaves = autograd::grad({out}, inputs and aliases, {grad_out}, false, false, /*allow_unused=*/true);
//   }                                                  // deferred leaves are undefined in `leaves`
//   ... later, on any thread:
//   deferred.Flush([](nn::DeferredGrads::Result result) {...});   // result.leaf.is_same(alias)
//
// What is deferred: weight and bias of every Linear in a block. Norm gains, embeddings and the head are computed in the
// input half: the head recomputes its logits for dX, and would have to do it a second time for dW.
// The aliases of a layer are used by one Linear each; Flush delivers each once.
// Threads: an object is used by one thread at a time. A Scope belongs to the thread that made it; scopes do not nest.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "model/precision.h"

namespace penstock::nn {

class DeferredGrads {
 public:
  class Scope {
   public:
    explicit Scope(DeferredGrads& queue);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

  struct Result {
    at::Tensor leaf;  // the alias that was passed to Layer::Forward
    at::Tensor grad;
  };

  bool empty() const { return queue_.empty(); }
  // Bytes of the operands that the queue keeps alive; storage shared by several entries counts once.
  int64_t bytes() const;
  // Computes everything that is queued, in the order of queueing, and hands out each gradient as soon as it is there,
  // so that only those of one Linear are alive beside what `take` keeps. The queue is empty afterwards.
  void Flush(const std::function<void(Result)>& take);

  // The queue of this thread's innermost Scope, nullptr outside. For the backward functions.
  static DeferredGrads* active();
  // Queue grad(weight) = grad_output^T x and, when `bias` is defined, grad(bias) = sum of rows.
  void Push(at::Tensor grad_output, at::Tensor x, at::Tensor weight, at::Tensor bias, model::Precision precision);

 private:
  struct Entry {
    at::Tensor grad_output, x, weight, bias;
    model::Precision precision;
  };
  std::vector<Entry> queue_;
};

}  // namespace penstock::nn
