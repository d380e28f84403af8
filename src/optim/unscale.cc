#include "optim/unscale.h"

#include "base/error.h"
#include "optim/elementwise_kernel.h"

namespace penstock::optim {

bool Unscale(at::Tensor& gradient, double scale) {
  // A gradient may share its memory with another one (that of a sum is a view of what it was given).
  const bool alone = gradient.use_count() == 1 && gradient.storage().use_count() == 1 && gradient.is_contiguous();
  if (!alone) gradient = gradient.clone(at::MemoryFormat::Contiguous);
  if (gradient.scalar_type() == at::kFloat)
    return ScaleInto(gradient.mutable_data_ptr<float>(), static_cast<float>(1 / scale), gradient.numel());
  PENSTOCK_CHECK(gradient.scalar_type() == at::kDouble, "a loss scale is for gradients in fp32 or fp64");
  return ScaleInto(gradient.mutable_data_ptr<double>(), 1 / scale, gradient.numel());
}

}  // namespace penstock::optim
