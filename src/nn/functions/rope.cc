#include "nn/functions/rope.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numbers>

namespace penstock::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// cosine, sine [length, 1, head_dim / 2]
at::Tensor Turn(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, bool back) {
  const int64_t half = x.size(-1) / 2;
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  at::Tensor y = at::empty(x.sizes(), x.options());
  at::Tensor first = y.narrow(-1, 0, half), second = y.narrow(-1, half, half);
  at::mul_out(first, a, cosine).addcmul_(b, sine, back ? 1 : -1);
  at::mul_out(second, b, cosine).addcmul_(a, sine, back ? -1 : 1);
  return y;
}

struct RopeFunction : torch::autograd::Function<RopeFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& cosine,
                            const at::Tensor& sine) {
    ctx->save_for_backward({cosine, sine});
    return Turn(x, cosine, sine, false);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    return {Turn(grads[0], saved[0], saved[1], true), at::Tensor(), at::Tensor()};
  }
};

// Radians per position of every pair.
at::Tensor Speeds(const RopeSpec& spec) {
  at::Tensor speeds =
      at::pow(spec.base, at::arange(0, spec.head_dim, 2, at::kDouble).mul_(-1.0 / static_cast<double>(spec.head_dim)));
  if (spec.scaling == "none") return speeds;
  double* const speed = speeds.mutable_data_ptr<double>();
  for (int64_t i = 0; i < speeds.numel(); ++i) {
    const double slow = speed[i] / spec.factor;
    if (spec.scaling == "linear") {
      speed[i] = slow;
      continue;
    }
    const double turns = static_cast<double>(spec.original_context) * speed[i] / (2 * std::numbers::pi);
    const double unchanged =
        std::clamp((turns - spec.low_frequency) / (spec.high_frequency - spec.low_frequency), 0.0, 1.0);
    speed[i] = (1 - unchanged) * slow + unchanged * speed[i];
  }
  return speeds;
}

}  // namespace

std::shared_ptr<const RopeTable> GetRopeTable(const RopeSpec& spec) {
  static std::mutex mutex;
  static std::map<RopeSpec, std::weak_ptr<const RopeTable>> tables;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const RopeTable>& known = tables[spec];
  if (auto table = known.lock()) return table;
  at::NoGradGuard no_grad;
  const at::Tensor position = at::arange(spec.context, at::kDouble).unsqueeze(1);
  const at::Tensor angle = position * Speeds(spec);
  auto table = std::make_shared<RopeTable>();
  table->cosine_double = angle.cos();
  table->sine_double = angle.sin();
  table->cosine = table->cosine_double.to(at::kFloat);
  table->sine = table->sine_double.to(at::kFloat);
  known = table;
  return table;
}

at::Tensor Rope(const at::Tensor& x, const RopeTable& table, int64_t first) {
  const bool wide = x.scalar_type() == at::kDouble;
  const int64_t length = x.size(1);
  return RopeFunction::apply(x, (wide ? table.cosine_double : table.cosine).narrow(0, first, length).unsqueeze(1),
                             (wide ? table.sine_double : table.sine).narrow(0, first, length).unsqueeze(1));
}

}  // namespace penstock::nn
