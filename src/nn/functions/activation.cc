#include "nn/functions/activation.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "nn/functions/elementwise_kernel.h"

namespace penstock::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 1 << 15;

struct GeluFunction : torch::autograd::Function<GeluFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& given) {
    const at::Tensor x = given.contiguous();
    ctx->save_for_backward({x});
    at::Tensor y = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gelu", [&] {
      const scalar_t* from = x.const_data_ptr<scalar_t>();
      scalar_t* to = y.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, x.numel(), kGrain,
                       [&](int64_t begin, int64_t end) { GeluForward(from + begin, to + begin, end - begin); });
    });
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor x = ctx->get_saved_variables()[0], grad_y = grads[0].contiguous();
    at::Tensor grad_x = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gelu_backward", [&] {
      const scalar_t *g = grad_y.const_data_ptr<scalar_t>(), *from = x.const_data_ptr<scalar_t>();
      scalar_t* to = grad_x.mutable_data_ptr<scalar_t>();
      at::parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
        GeluBackward(g + begin, from + begin, to + begin, end - begin);
      });
    });
    return {grad_x};
  }
};

}  // namespace

at::Tensor Gelu(const at::Tensor& x) { return GeluFunction::apply(x); }

at::Tensor Swiglu(const at::Tensor& gate, const at::Tensor& up) { return at::silu(gate) * up; }

}  // namespace penstock::nn
