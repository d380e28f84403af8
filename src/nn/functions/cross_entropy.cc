#include "nn/functions/cross_entropy.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <algorithm>

#include "base/error.h"
#include "nn/functions/gemm.h"
#include "nn/layer.h"

namespace penstock::nn {
namespace {

using model::Precision;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void CheckLabels(const at::Tensor& labels, int64_t vocabulary) {
  const int64_t* label = labels.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    PENSTOCK_CHECK(label[i] == kIgnoredLabel || (label[i] >= 0 && label[i] < vocabulary),
                   "label {} of token {} is outside the vocabulary of {}", label[i], i, vocabulary);
}

// Sum over the chunk's valid tokens of log-sum-exp minus the label's logit, continued from `sum`.
double AddLosses(const at::Tensor& logits, const at::Tensor& log_sum_exp, const int64_t* label, double sum) {
  const int64_t rows = logits.size(0), columns = logits.size(1);
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy", [&] {
    const scalar_t *z = logits.const_data_ptr<scalar_t>(), *lse = log_sum_exp.const_data_ptr<scalar_t>();
    for (int64_t i = 0; i < rows; ++i)
      if (label[i] != kIgnoredLabel)
        sum += static_cast<double>(lse[i]) - static_cast<double>(z[i * columns + label[i]]);
  });
  return sum;
}

// logits -> grad_output (softmax - onehot), rows without a label exactly 0 whatever their logits.
void ToGradient(at::Tensor& logits, const at::Tensor& log_sum_exp, const int64_t* label, double grad_output) {
  const int64_t rows = logits.size(0), columns = logits.size(1);
  logits.sub_(log_sum_exp.unsqueeze(1)).exp_();
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy_backward", [&] {
    scalar_t* p = logits.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < rows; ++i)
      if (label[i] != kIgnoredLabel) p[i * columns + label[i]] -= scalar_t{1};
  });
  logits.mul_(grad_output);
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy_backward", [&] {
    scalar_t* p = logits.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < rows; ++i)
      if (label[i] == kIgnoredLabel) std::fill_n(p + i * columns, columns, scalar_t{0});
  });
}

struct CrossEntropyFunction : torch::autograd::Function<CrossEntropyFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& given, const at::Tensor& weight,
                            const at::Tensor& given_labels, int64_t chunk, int64_t precision) {
    const auto p = static_cast<Precision>(precision);
    const at::Tensor x = Operand(Rows(given), p), labels = given_labels.reshape({-1}).contiguous();
    const int64_t tokens = x.size(0), vocabulary = weight.size(0);
    PENSTOCK_CHECK_EQ(labels.numel(), tokens);
    CheckLabels(labels, vocabulary);
    const at::Tensor w = Rounded(weight, p);
    at::Tensor log_sum_exp = at::empty({tokens}, w.options());
    at::Tensor workspace = at::empty({std::min(chunk, tokens), vocabulary}, w.options());
    double sum = 0.0;
    for (int64_t begin = 0; begin < tokens; begin += chunk) {
      const int64_t rows = std::min(chunk, tokens - begin);
      at::Tensor logits = workspace.narrow(0, 0, rows), lse = log_sum_exp.narrow(0, begin, rows);
      at::mm_out(logits, Widened(x.narrow(0, begin, rows)), w.t());
      lse.copy_(at::logsumexp(logits, 1));
      sum = AddLosses(logits, lse, labels.const_data_ptr<int64_t>() + begin, sum);
    }
    ctx->save_for_backward({x, weight, labels, log_sum_exp});
    ctx->saved_data["chunk"] = chunk;
    ctx->saved_data["precision"] = precision;
    ctx->saved_data["shape"] = given.sizes().vec();
    return at::scalar_tensor(sum, at::TensorOptions(at::kDouble));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto precision = static_cast<Precision>(ctx->saved_data["precision"].toInt());
    const int64_t chunk = ctx->saved_data["chunk"].toInt();
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &labels = saved[2], &log_sum_exp = saved[3];
    const double grad_output = grads[0].item<double>();
    const int64_t tokens = x.size(0), vocabulary = weight.size(0);
    const bool want_weight = ctx->needs_input_grad(1);

    const at::Tensor w = Rounded(weight, precision);
    at::Tensor grad_x = at::empty({tokens, w.size(1)}, w.options());
    at::Tensor grad_weight = want_weight ? at::zeros_like(w) : at::Tensor();
    at::Tensor workspace = at::empty({std::min(chunk, tokens), vocabulary}, w.options());
    for (int64_t begin = 0; begin < tokens; begin += chunk) {
      const int64_t rows = std::min(chunk, tokens - begin);
      at::Tensor gradient = workspace.narrow(0, 0, rows), dx = grad_x.narrow(0, begin, rows);
      const at::Tensor chunk_x = Widened(x.narrow(0, begin, rows));
      at::mm_out(gradient, chunk_x, w.t());
      ToGradient(gradient, log_sum_exp.narrow(0, begin, rows), labels.const_data_ptr<int64_t>() + begin, grad_output);
      const at::Tensor operand = Rounded(gradient, precision);
      at::mm_out(dx, operand, w);
      if (want_weight) grad_weight.addmm_(operand.t(), chunk_x);
    }
    return {grad_x.view(ctx->saved_data["shape"].toIntVector()), grad_weight, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor LinearCrossEntropySum(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& labels, int64_t chunk,
                                 Precision precision) {
  return CrossEntropyFunction::apply(x, weight, labels, chunk, static_cast<int64_t>(precision));
}

}  // namespace penstock::nn
