#include "nn/functions/dropout.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <cmath>

#include "base/error.h"
#include "base/philox.h"
#include "nn/functions/elementwise_kernel.h"

namespace penstock::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor Masked(const at::Tensor& given, double probability, int64_t seed, int64_t site, int64_t step,
                  const std::vector<int64_t>& samples) {
  const at::Tensor x = given.contiguous();
  at::Tensor y = at::empty_like(x);
  if (x.numel() == 0) return y;
  const int64_t elements = x.numel() / x.size(0);
  DropoutStream stream{.key = MakePhiloxKey(static_cast<uint64_t>(seed), "dropout"),
                       .sample = 0,
                       .site = static_cast<uint32_t>(site),
                       .step = static_cast<uint32_t>(step),
                       .threshold = static_cast<uint32_t>(std::ldexp(probability, 32)),
                       .scale = 1.0 / (1.0 - probability)};
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "dropout", [&] {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = y.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, x.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        DropoutStream mine = stream;
        mine.sample = static_cast<uint32_t>(samples[b]);
        Dropout(mine, 0, from + b * elements, to + b * elements, elements);
      }
    });
  });
  return y;
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double probability, int64_t seed, int64_t site,
                            int64_t step, const std::vector<int64_t>& samples) {
    ctx->saved_data["probability"] = probability;
    ctx->saved_data["seed"] = seed;
    ctx->saved_data["site"] = site;
    ctx->saved_data["step"] = step;
    ctx->saved_data["samples"] = samples;
    return Masked(x, probability, seed, site, step, samples);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    auto& data = ctx->saved_data;
    return {Masked(grads[0], data["probability"].toDouble(), data["seed"].toInt(), data["site"].toInt(),
                   data["step"].toInt(), data["samples"].toIntVector()),
            {},
            {},
            {},
            {},
            {}};
  }
};

}  // namespace

uint32_t DropoutSite(std::string_view layer_path, std::string_view place) {
  const uint64_t hash = HashName(std::string(layer_path) + "/" + std::string(place));
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

at::Tensor KeyedDropout(const at::Tensor& x, double probability, uint32_t site, const LayerContext& context) {
  if (probability == 0.0 || !context.training) return x;
  PENSTOCK_CHECK_EQ(static_cast<int64_t>(context.batch->sample_ids.size()), x.size(0));
  return DropoutFunction::apply(x, probability, static_cast<int64_t>(context.seed), static_cast<int64_t>(site),
                                context.step, context.batch->sample_ids);
}

}  // namespace penstock::nn
