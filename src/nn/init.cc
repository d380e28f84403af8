#include "nn/init.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "nn/functions/normal_kernel.h"
#include "nn/layer.h"

namespace penstock::nn {

void FillInitialValues(const model::ParameterSpec& parameter, uint64_t seed, int64_t begin, std::span<float> out) {
  const auto n = static_cast<int64_t>(out.size());
  PENSTOCK_CHECK(begin >= 0 && begin + n <= parameter.numel(), "{} has {} elements", parameter.name, parameter.numel());
  switch (parameter.init) {
    case model::Init::zeros:
      std::fill(out.begin(), out.end(), 0.0f);
      return;
    case model::Init::ones:
      std::fill(out.begin(), out.end(), 1.0f);
      return;
    case model::Init::normal:
      FillNormal(MakePhiloxKey(seed, "init"), HashName(parameter.name), parameter.std, begin, out.data(), n);
      return;
  }
}

at::Tensor InitialParameter(const model::ParameterSpec& parameter, uint64_t seed, model::Precision precision) {
  at::NoGradGuard no_grad;
  at::Tensor values = at::empty(parameter.shape, at::TensorOptions(at::kFloat));
  float* out = values.mutable_data_ptr<float>();
  at::parallel_for(0, values.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    FillInitialValues(parameter, seed, begin, {out + begin, static_cast<size_t>(end - begin)});
  });
  return values.to(WideType(precision));
}

}  // namespace penstock::nn
