// src/checkpoint/tensor_source.h
//
// Named tensors that are produced one at a time, so that a checkpoint can be written (or two states compared) without
// one rank holding everything at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace penstock::checkpoint {

struct TensorSpec {
  std::string name{};
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape{};

  int64_t numel() const;
  int64_t bytes() const;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// `specs` is known in advance, names are unique; `fetch(i)` is called for i = 0, 1, ... in this order, once each, and
// returns a CPU tensor of that dtype and shape. It may be a collective: ranks that do not write call it in the same
// order and drop the result. The tensor is released before the next one is fetched.
struct TensorSource {
  std::vector<TensorSpec> specs;
  std::function<at::Tensor(int index)> fetch;
};

class SafetensorsReader;

using NamedTensors = std::map<std::string, at::Tensor>;

// A source over tensors in memory, in order of name. Shares their storage.
TensorSource FromMemory(const NamedTensors& tensors);
// A source over an open file, in the order of its data; reads a tensor when it is fetched, in any order. The reader
// must outlive it.
TensorSource FromFile(const SafetensorsReader& reader);

}  // namespace penstock::checkpoint
