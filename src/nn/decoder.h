// src/nn/decoder.h
//
// The whole chain of a language model on one thread, sequence after sequence, with the keys and values of earlier
// positions kept: appending a token costs one position, not the whole sequence again.
//
// Logits equal those of the full forward (layer.h) up to rounding: the sums are the same, their order is the kernels'.
// Memory: 2 capacity kv_heads head_dim numbers per block and sequence, from the first Append on; parameters are shared.
// Threads: one. Errors: UserError as layers give (sequence longer than the context); InternalError past the capacity.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/precision.h"
#include "model/spec.h"
#include "nn/functions/cached_attention.h"
#include "nn/layer.h"

namespace penstock::nn {

class Decoder {
 public:
  // `parameters` is indexed like spec.parameters. `capacity`: positions at most; not above spec.context.
  Decoder(const model::ModelSpec& spec, model::Precision precision, std::vector<at::Tensor> parameters,
          int64_t capacity);

  // tokens [batch, new] int64, at positions length(), length() + 1, ...; the batch is that of the first call. Gives
  // `output` of the new positions: logits [batch, new, vocabulary], or last_logits [batch, vocabulary].
  at::Tensor Append(const at::Tensor& tokens, HeadOutput output = HeadOutput::last_logits);
  // Forgets the positions from `length` on.
  void Truncate(int64_t length);

  int64_t length() const { return length_; }
  int64_t capacity() const { return capacity_; }

 private:
  const model::Precision precision_;
  const int64_t capacity_;
  int64_t length_ = 0;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::vector<at::Tensor>> parameters_;  // [layer]
  std::vector<KeyValueCache> caches_;                // [layer]
};

// Logits [batch, vocabulary] of the last position of tokens [batch, length], by the full forward and without a cache.
at::Tensor LastLogits(const model::ModelSpec& spec, model::Precision precision,
                      const std::vector<at::Tensor>& parameters, const at::Tensor& tokens);

}  // namespace penstock::nn
