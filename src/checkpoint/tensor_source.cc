#include "checkpoint/tensor_source.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace penstock::checkpoint {

int64_t TensorSpec::numel() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

int64_t TensorSpec::bytes() const { return numel() * static_cast<int64_t>(c10::elementSize(dtype)); }

TensorSource FromMemory(const NamedTensors& tensors) {
  TensorSource source;
  std::vector<at::Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    PENSTOCK_CHECK(tensor.defined(), "tensor '{}' is undefined", name);
    source.specs.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
    values.push_back(tensor);
  }
  source.fetch = [values = std::move(values)](int index) { return values[index]; };
  return source;
}

TensorSource FromFile(const SafetensorsReader& reader) {
  TensorSource source;
  for (const SafetensorsEntry& entry : reader.header().entries) source.specs.push_back(entry.spec);
  source.fetch = [&reader](int index) { return reader.Read(reader.header().entries[index].spec.name); };
  return source;
}

}  // namespace penstock::checkpoint
