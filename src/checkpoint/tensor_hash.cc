#include "checkpoint/tensor_hash.h"

#include "checkpoint/safetensors_header.h"

namespace penstock::checkpoint {

TensorHasher::TensorHasher(const TensorSpec& spec) {
  const std::string dtype = SafetensorsDtype(spec.dtype);
  hasher_.Update(spec.name.size()).Update(spec.name).Update(dtype.size()).Update(dtype).Update(spec.shape.size());
  for (const int64_t d : spec.shape) hasher_.Update(static_cast<uint64_t>(d));
}

std::string HashTensor(const std::string& name, const at::Tensor& tensor) {
  TensorHasher hasher({name, tensor.scalar_type(), tensor.sizes().vec()});
  const at::Tensor bytes = tensor.contiguous();
  hasher.Add({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  return hasher.Finish();
}

}  // namespace penstock::checkpoint
