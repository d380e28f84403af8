// Every function of nn against plain libtorch operations, in fp64: values and gradients.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>
#include <functional>

#include "base/error.h"
#include "nn/functions/activation.h"
#include "nn/functions/attention.h"
#include "nn/functions/cross_entropy.h"
#include "nn/functions/dropout.h"
#include "nn/functions/linear.h"
#include "nn/functions/norm.h"
#include "nn/functions/rope.h"

namespace penstock::nn {
namespace {

using at::Tensor;
using model::Precision;
using List = std::vector<Tensor>;

Tensor Values(at::IntArrayRef shape, int64_t salt = 0) {
  Tensor t =
      at::arange(c10::multiply_integers(shape), at::kLong).add_(salt * 1013).mul_(2654435761).bitwise_and_(0xffffff);
  return t.to(at::kDouble).mul_(2.0 / 0x1000000).sub_(1.0).reshape(shape);
}

List Gradients(const std::function<Tensor(const List&)>& f, const List& inputs, Tensor* value) {
  at::AutoGradMode grad(true);
  List leaves;
  for (const Tensor& t : inputs) leaves.push_back(t.detach().requires_grad_(true));
  const Tensor y = f(leaves);
  *value = y.detach();
  return torch::autograd::grad({y}, leaves, {Values(y.sizes(), 99).to(y.scalar_type())});
}

// Relative to the largest element, at least to 0.1: inputs are of order one, and some gradients are exactly zero.
double RelativeError(const Tensor& a, const Tensor& b) {
  const double scale = b.to(at::kDouble).abs().max().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() / std::max(scale, 0.1);
}

// Same value and gradients as the reference in fp64; in fp32 within `single`.
void ExpectLike(const std::function<Tensor(const List&)>& f, const std::function<Tensor(const List&)>& reference,
                const List& inputs, double single = 2e-6) {
  Tensor value, expected;
  const List grads = Gradients(f, inputs, &value), expected_grads = Gradients(reference, inputs, &expected);
  EXPECT_LT(RelativeError(value, expected), 1e-13);
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_LT(RelativeError(grads[i], expected_grads[i]), 1e-12) << i;
  List narrow;
  for (const Tensor& t : inputs) narrow.push_back(t.to(at::kFloat));
  const List single_grads = Gradients(f, narrow, &value);
  EXPECT_LT(RelativeError(value, expected), single);
  for (size_t i = 0; i < grads.size(); ++i) EXPECT_LT(RelativeError(single_grads[i], expected_grads[i]), single) << i;
}

// Central differences in fp64.
void ExpectNumericalGradient(const std::function<Tensor(const List&)>& f, const List& inputs) {
  Tensor value;
  const List grads = Gradients(f, inputs, &value);
  const Tensor weights = Values(value.sizes(), 99);
  const double h = 1e-6;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (int64_t k = 0; k < inputs[i].numel(); k += std::max<int64_t>(1, inputs[i].numel() / 7)) {
      double sides[2];
      for (int side = 0; side < 2; ++side) {
        at::NoGradGuard no_grad;
        List moved;
        for (const Tensor& t : inputs) moved.push_back(t.clone());
        moved[i].view(-1)[k] += side == 0 ? -h : h;
        sides[side] = (f(moved) * weights).sum().item<double>();
      }
      EXPECT_NEAR(grads[i].reshape(-1)[k].item<double>(), (sides[1] - sides[0]) / (2 * h), 1e-7) << i << " " << k;
    }
}

TEST(Functions, Linear) {
  const auto ours = [](const List& t) {
    return Linear(t[0], t[1], t[2], t[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::fp32);
  };
  const auto reference = [](const List& t) { return at::linear(t[0], t[1], t[2]); };
  ExpectLike(ours, reference, {Values({3, 5, 8}), Values({6, 8}, 1), Values({6}, 2)});
  ExpectNumericalGradient(ours, {Values({3, 5, 8}), Values({6, 8}, 1), Values({6}, 2)});
}

TEST(Functions, LinearHasTheBitsOfLibtorch) {
  const List inputs = {Values({2, 50, 96}).to(at::kFloat), Values({64, 96}, 1).to(at::kFloat),
                       Values({64}, 2).to(at::kFloat)};
  Tensor value, expected;
  const List a = Gradients([](const List& t) { return Linear(t[0], t[1], t[2], Precision::fp32); }, inputs, &value);
  const List b = Gradients([](const List& t) { return at::linear(t[0], t[1], t[2]); }, inputs, &expected);
  EXPECT_TRUE(at::equal(value, expected));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
}

TEST(Functions, LinearInBf16) {
  const List inputs = {Values({40, 64}).to(at::kFloat), Values({32, 64}, 1).to(at::kFloat)};
  Tensor value, expected;
  const List a = Gradients([](const List& t) { return Linear(t[0], t[1], {}, Precision::bf16); }, inputs, &value);
  const List b = Gradients([](const List& t) { return at::linear(t[0], t[1]); }, inputs, &expected);
  EXPECT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_LT(RelativeError(value, expected), 8e-3);  // operands carry 8 bits: 2^-8 each, averaged over 64 products
  EXPECT_GT(RelativeError(value, expected), 1e-5);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].scalar_type(), at::kFloat);
    EXPECT_LT(RelativeError(a[i], b[i]), 8e-3) << i;
  }
  // The product itself is not rounded again.
  const Tensor exact =
      at::mm(inputs[0].to(at::kBFloat16).to(at::kDouble), inputs[1].to(at::kBFloat16).to(at::kDouble).t());
  EXPECT_LT(RelativeError(value, exact), 1e-6);
}

TEST(Functions, LinearInFp16) {
  const List inputs = {Values({40, 64}).to(at::kFloat), Values({32, 64}, 1).to(at::kFloat)};
  Tensor value, expected;
  const List a = Gradients([](const List& t) { return Linear(t[0], t[1], {}, Precision::fp16); }, inputs, &value);
  const List b = Gradients([](const List& t) { return at::linear(t[0], t[1]); }, inputs, &expected);
  EXPECT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_LT(RelativeError(value, expected), 1e-3);  // operands carry 11 bits
  EXPECT_GT(RelativeError(value, expected), 1e-6);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].scalar_type(), at::kFloat);
    EXPECT_LT(RelativeError(a[i], b[i]), 1e-3) << i;
  }
  const Tensor exact = at::mm(inputs[0].to(at::kHalf).to(at::kDouble), inputs[1].to(at::kHalf).to(at::kDouble).t());
  EXPECT_LT(RelativeError(value, exact), 1e-6);
}

// What loss scaling is for: gradients below 2^-25 are zero as operands, above 65,504 infinite. The results are fp32.
TEST(Functions, LinearInFp16HasTheRangeOfFp16) {
  const Tensor x = at::ones({2, 4}), w = at::ones({3, 4});
  const auto gradient = [&](double factor) {
    Tensor value;
    return Gradients([&](const List& t) { return Linear(t[0], t[1], {}, Precision::fp16) * factor; }, {x, w},
                     &value)[1];
  };
  EXPECT_EQ(gradient(0x1p-27).abs().max().item<double>(), 0);
  EXPECT_GT(gradient(0x1p-27 * 65536).abs().max().item<double>(), 0);
  EXPECT_TRUE(gradient(1e4).isfinite().all().item<bool>());
  EXPECT_FALSE(gradient(1e6).isfinite().all().item<bool>());
  // In the forward pass too, and the product of what fits may be larger than fp16 goes.
  const auto product = [](double factor) {
    return Linear(at::full({1, 4}, factor), at::ones({1, 4}), {}, Precision::fp16);
  };
  EXPECT_EQ(product(60000).item<double>(), 240000);
  EXPECT_TRUE(std::isinf(product(70000).item<double>()));
}

TEST(Functions, Norms) {
  const List inputs = {Values({3, 5, 16}), Values({16}, 1).add_(1.5), Values({16}, 2)};
  ExpectLike([](const List& t) { return LayerNorm(t[0], t[1], t[2], 1e-5); },
             [](const List& t) {
               const Tensor centred = t[0] - t[0].mean(-1, true);
               return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * t[1] + t[2];
             },
             inputs);
  const auto ours = [](const List& t) { return RmsNorm(t[0], t[1], 1e-5); };
  ExpectLike(ours, [](const List& t) { return t[0] / (t[0].square().mean(-1, true) + 1e-5).sqrt() * t[1]; },
             {inputs[0], inputs[1]});
  ExpectNumericalGradient(ours, {inputs[0], inputs[1]});
}

TEST(Functions, Activations) {
  ExpectLike([](const List& t) { return Gelu(t[0]); }, [](const List& t) { return at::gelu(t[0], "tanh"); },
             {Values({7, 33}).mul_(6)});
  ExpectLike([](const List& t) { return Swiglu(t[0], t[1]); },
             [](const List& t) { return t[0] * at::sigmoid(t[0]) * t[1]; },
             {Values({7, 33}).mul_(6), Values({7, 33}, 1)});
}

TEST(Functions, GeluEdges) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensor x = at::tensor({-1e30, -50.0, -0.0, 0.0, 50.0, 1e30, infinity}, at::kDouble).to(type);
    const Tensor y = Gelu(x);
    EXPECT_TRUE(at::isfinite(y.narrow(0, 0, 6)).all().item<bool>());
    EXPECT_NEAR(y[1].item<double>(), 0.0, 1e-30);
    EXPECT_EQ(y[4].item<double>(), 50.0);
    EXPECT_EQ(y[6].item<double>(), infinity);
    EXPECT_TRUE(std::isnan(Gelu(at::full({3}, NAN, type))[1].item<double>()));
  }
}

// An element's bits do not depend on where it stands: vector body and tail agree.
TEST(Functions, GeluTailIsLikeItsBody) {
  const Tensor x = Values({259}).to(at::kFloat).mul_(4), whole = Gelu(x);
  for (int64_t n = 1; n < 70; ++n) EXPECT_TRUE(at::equal(whole.narrow(0, 0, n), Gelu(x.narrow(0, 0, n)))) << n;
}

TEST(Functions, Rope) {
  const auto table = GetRopeTable({.context = 9, .head_dim = 6});
  const auto reference = [](const List& t) {
    const Tensor x = t[0], position = at::arange(x.size(1), at::kDouble).view({1, -1, 1, 1});
    const int64_t half = x.size(3) / 2;
    const Tensor angle = position * at::pow(10000.0, at::arange(half, at::kDouble) * (-2.0 / 6.0));
    const Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
    return at::cat({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()}, 3);
  };
  ExpectLike([&](const List& t) { return Rope(t[0], *table); }, reference, {Values({2, 9, 3, 6})});
  EXPECT_EQ(GetRopeTable({.context = 9, .head_dim = 6}), table);
  // Dot products depend on distance only.
  const Tensor q = Values({1, 1, 1, 6}).expand({1, 9, 1, 6}), k = Values({1, 1, 1, 6}, 4).expand({1, 9, 1, 6});
  const Tensor scores = at::matmul(Rope(q, *table).view({9, 6}), Rope(k, *table).view({9, 6}).t());
  EXPECT_NEAR(scores[3][1].item<double>(), scores[8][6].item<double>(), 1e-12);
}

TEST(Functions, FusedAttentionLikeReference) {
  const LayerContext context;
  for (const int64_t length : {1, 5, 16, 40}) {
    const List inputs = {Values({2, length, 3, 8}), Values({2, length, 3, 8}, 1), Values({2, length, 3, 8}, 2)};
    ExpectLike([](const List& t) { return FusedAttention(t[0], t[1], t[2]); },
               [&](const List& t) { return ReferenceAttention(t[0], t[1], t[2], 0.0, 0, context); }, inputs, 5e-6);
  }
  const auto grouped = [](const List& t) { return FusedAttention(t[0], ExpandHeads(t[1], 4), ExpandHeads(t[2], 4)); };
  ExpectNumericalGradient(grouped, {Values({2, 5, 4, 8}), Values({2, 5, 2, 8}, 1), Values({2, 5, 2, 8}, 2)});
}

TEST(Functions, AttentionDoesNotSeeTheFuture) {
  Tensor q = Values({1, 12, 2, 8}), k = Values({1, 12, 2, 8}, 1), v = Values({1, 12, 2, 8}, 2);
  const Tensor before = FusedAttention(q, k, v);
  k = k.clone(), v = v.clone();
  k.narrow(1, 7, 5).fill_(3.0), v.narrow(1, 7, 5).fill_(-3.0);
  EXPECT_TRUE(at::equal(before.narrow(1, 0, 7), FusedAttention(q, k, v).narrow(1, 0, 7)));
}

Tensor PlainLoss(const Tensor& x, const Tensor& w, const Tensor& labels) {
  return at::cross_entropy_loss(at::mm(x.reshape({-1, x.size(-1)}), w.t()), labels.reshape(-1), {}, at::Reduction::Sum,
                                kIgnoredLabel);
}

TEST(Functions, CrossEntropyForAnyChunk) {
  Tensor labels = at::arange(21).remainder(11).view({3, 7}).contiguous();
  labels.view(-1)[4] = kIgnoredLabel;
  labels.view(-1)[20] = kIgnoredLabel;
  for (const int64_t chunk : {1, 4, 7, 21, 100}) {
    const auto ours = [&](const List& t) {
      return LinearCrossEntropySum(t[0], t[1], labels, chunk,
                                   t[0].scalar_type() == at::kDouble ? Precision::fp64 : Precision::fp32);
    };
    ExpectLike(ours, [&](const List& t) { return PlainLoss(t[0], t[1], labels); },
               {Values({3, 7, 8}).mul_(3), Values({11, 8}, 1)});
  }
}

TEST(Functions, CrossEntropyIgnoresWhatHasNoLabel) {
  const Tensor labels = at::full({6}, kIgnoredLabel, at::kLong);
  Tensor value;
  List inputs = {Values({6, 8}), Values({11, 8}, 1)};
  const auto ours = [&](const List& t) { return LinearCrossEntropySum(t[0], t[1], labels, 4, Precision::fp64); };
  for (const Tensor& gradient : Gradients(ours, inputs, &value)) EXPECT_EQ(gradient.abs().sum().item<double>(), 0.0);
  EXPECT_EQ(value.item<double>(), 0.0);
  // Padding with absurd activations adds nothing to the gradient of x either.
  inputs[0][2] = 1e200;
  const List grads = Gradients(ours, inputs, &value);
  EXPECT_EQ(grads[0].abs().sum().item<double>(), 0.0);
}

TEST(Functions, CrossEntropyOfHugeLogitsIsFinite) {
  const Tensor labels = at::arange(4);
  Tensor value;
  const auto ours = [&](const List& t) { return LinearCrossEntropySum(t[0], t[1], labels, 4, Precision::fp32); };
  const List inputs = {Values({4, 8}).mul_(1e3).to(at::kFloat), Values({11, 8}, 1).mul_(1e3).to(at::kFloat)};
  for (const Tensor& gradient : Gradients(ours, inputs, &value)) EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
  EXPECT_TRUE(std::isfinite(value.item<double>()));
}

TEST(Functions, CrossEntropyNamesABadLabel) {
  for (const int64_t label : {-1, 11}) {
    const Tensor labels = at::full({2}, label, at::kLong);
    EXPECT_THROW(LinearCrossEntropySum(Values({2, 8}), Values({11, 8}), labels, 4, Precision::fp64), InternalError);
  }
}

LayerContext Context(const MicroBatchInputs& batch, int64_t step = 0) {
  return {.batch = &batch, .seed = 5, .step = step, .precision = Precision::fp32};
}

TEST(Functions, DropoutDependsOnTheSampleNotOnTheBatch) {
  const MicroBatchInputs all{.tokens = {}, .labels = {}, .sample_ids = {10, 11, 12, 13}};
  const MicroBatchInputs some{.tokens = {}, .labels = {}, .sample_ids = {12, 11}};
  const Tensor ones = at::ones({4, 9, 7});
  const uint32_t site = DropoutSite("blocks.0", "mlp");
  const Tensor a = KeyedDropout(ones, 0.3, site, Context(all)),
               b = KeyedDropout(ones.narrow(0, 0, 2), 0.3, site, Context(some));
  EXPECT_TRUE(at::equal(a[2], b[0]));
  EXPECT_TRUE(at::equal(a[1], b[1]));
  EXPECT_FALSE(at::equal(a[0], a[1]));
  // A shorter sequence sees the beginning of the longer one's mask.
  const Tensor shorter = KeyedDropout(ones.narrow(1, 0, 5), 0.3, site, Context(all));
  EXPECT_TRUE(at::equal(shorter, a.narrow(1, 0, 5)));
  EXPECT_FALSE(at::equal(a, KeyedDropout(ones, 0.3, site, Context(all, 1))));
  EXPECT_FALSE(at::equal(a, KeyedDropout(ones, 0.3, DropoutSite("blocks.1", "mlp"), Context(all))));
}

TEST(Functions, DropoutKeepsTheMeanAndItsMaskInBackward) {
  const MicroBatchInputs batch{.tokens = {}, .labels = {}, .sample_ids = {0, 1, 2, 3}};
  Tensor value;
  const List grads = Gradients([&](const List& t) { return KeyedDropout(t[0], 0.2, 9, Context(batch)); },
                               {at::ones({4, 10'000}, at::kFloat)}, &value);
  EXPECT_NEAR((value == 0).to(at::kFloat).mean().item<double>(), 0.2, 0.01);
  EXPECT_NEAR(value.mean().item<double>(), 1.0, 0.01);
  EXPECT_TRUE(at::equal(grads[0] == 0, value == 0));
}

TEST(Functions, DropoutIsOffOutsideOfTraining) {
  const MicroBatchInputs batch{.tokens = {}, .labels = {}, .sample_ids = {0}};
  LayerContext context = Context(batch);
  context.training = false;
  const Tensor x = Values({1, 8});
  EXPECT_TRUE(KeyedDropout(x, 0.5, 1, context).is_same(x));
}

}  // namespace
}  // namespace penstock::nn
