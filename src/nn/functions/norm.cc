#include "nn/functions/norm.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "nn/functions/gemm.h"

namespace penstock::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& given, const at::Tensor& weight, double eps) {
    const at::Tensor x = given.contiguous();
    const at::Tensor inverse_rms = x.square().mean(-1, true).add_(eps).rsqrt_();
    ctx->save_for_backward({x, weight, inverse_rms});
    return (x * inverse_rms).mul_(weight);
  }

  // With n = x / rms: dx = (g w - n mean(g w n)) / rms, dw = sum over rows of g n.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &inverse_rms = saved[2];
    const at::Tensor grad_y = grads[0].contiguous(), normalised = x * inverse_rms;
    const at::Tensor scaled = grad_y * weight;
    const at::Tensor projection = (scaled * normalised).mean(-1, true);
    at::Tensor grad_x = (scaled - normalised * projection).mul_(inverse_rms);
    at::Tensor grad_weight = Rows(grad_y * normalised).sum(0);
    return {grad_x, grad_weight, at::Tensor()};
  }
};

}  // namespace

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return RmsNormFunction::apply(x, weight, eps);
}

}  // namespace penstock::nn
