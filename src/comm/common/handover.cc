#include "comm/common/handover.h"

#include <ATen/core/grad_mode.h>

#include <cstdint>

#include "base/error.h"

namespace penstock::comm {

at::Tensor HandOver(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  PENSTOCK_CHECK(tensor.is_cpu() && tensor.layout() == at::kStrided, "only dense CPU tensors can be sent");
  at::NoGradGuard no_grad;
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 64 == 0;
  if (tensor.is_contiguous() && aligned) return tensor.detach();
  return tensor.detach().clone(at::MemoryFormat::Contiguous);
}

int64_t BytesOf(const at::Tensor& tensor) { return tensor.defined() ? tensor.numel() * tensor.element_size() : 0; }

}  // namespace penstock::comm
