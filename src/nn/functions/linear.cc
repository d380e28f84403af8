#include "nn/functions/linear.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "nn/deferred.h"
#include "nn/functions/gemm.h"

namespace penstock::nn {
namespace {

using model::Precision;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor Output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Precision precision) {
  const at::Tensor w = Rounded(weight, precision);
  return bias.defined() ? at::addmm(bias, x, w.t()) : at::mm(x, w.t());
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& operand,
                            const at::Tensor& weight, const std::optional<at::Tensor>& given_bias, int64_t precision) {
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    const auto p = static_cast<Precision>(precision);
    ctx->save_for_backward({operand, weight, bias});
    ctx->saved_data["precision"] = precision;
    std::vector<int64_t> shape = x.sizes().vec();
    shape.back() = weight.size(0);
    return Output(Widened(operand), weight, bias, p).view(shape);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto precision = static_cast<Precision>(ctx->saved_data["precision"].toInt());
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const at::Tensor grad_output = Rows(grads[0]);
    at::Tensor grad_x;
    if (ctx->needs_input_grad(0)) {
      std::vector<int64_t> shape = grads[0].sizes().vec();
      shape.back() = weight.size(1);
      grad_x = at::mm(Rounded(grad_output, precision), Rounded(weight, precision)).view(shape);
    }
    const bool want_bias = bias.defined() && ctx->needs_input_grad(3);
    LinearGrads now;
    if (ctx->needs_input_grad(2)) {
      if (DeferredGrads* queue = DeferredGrads::active()) {
        queue->Push(grad_output, x, weight, want_bias ? bias : at::Tensor(), precision);
      } else {
        now = LinearWeightHalf(grad_output, x, want_bias, precision);
      }
    } else if (want_bias) {
      now.bias = grad_output.sum(0);
    }
    return {grad_x, at::Tensor(), now.weight, now.bias, at::Tensor()};
  }
};

}  // namespace

LinearGrads LinearWeightHalf(const at::Tensor& grad_output, const at::Tensor& x, bool want_bias, Precision precision) {
  LinearGrads grads;
  grads.weight = at::mm(Rounded(grad_output, precision).t(), Widened(x));
  if (want_bias) grads.bias = grad_output.sum(0);
  return grads;
}

LinearInput MakeLinearInput(const at::Tensor& x, Precision precision) {
  at::NoGradGuard no_grad;
  return {x, Operand(Rows(x), precision)};
}

at::Tensor Linear(const LinearInput& input, const at::Tensor& weight, const at::Tensor& bias, Precision precision) {
  // A missing bias has to be a missing optional: an undefined tensor argument is taken for a variable.
  return LinearFunction::apply(input.x, input.operand, weight, bias.defined() ? std::optional(bias) : std::nullopt,
                               static_cast<int64_t>(precision));
}

at::Tensor Linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Precision precision) {
  return Linear(MakeLinearInput(x, precision), weight, bias, precision);
}

}  // namespace penstock::nn
