// src/checkpoint/tensor_hash.h
//
// The hash of a tensor: XXH3-128 over (name, dtype, shape, bytes), as 32 hexadecimal digits. Used by manifests and by
// `penstock compare` (docs/numerics.md R16). Streaming, so that a tensor can be hashed while it is read in pieces.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

#include "base/hash.h"
#include "checkpoint/tensor_source.h"

namespace penstock::checkpoint {

class TensorHasher {
 public:
  explicit TensorHasher(const TensorSpec& spec);
  void Add(std::string_view bytes) { hasher_.Update(bytes); }
  std::string Finish() const { return hasher_.Digest().Hex(); }

 private:
  Hasher hasher_;
};

// `tensor` may have any strides; its row-major bytes are hashed.
std::string HashTensor(const std::string& name, const at::Tensor& tensor);

}  // namespace penstock::checkpoint
