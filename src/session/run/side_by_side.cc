#include "session/run/side_by_side.h"

#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/median.h"
#include "comm/thread_ranks.h"
#include "model/gpt.h"
#include "nn/init.h"
#include "nn/layer.h"

namespace penstock::session {
namespace {

using Clock = std::chrono::steady_clock;

class Blocks {
 public:
  Blocks() {
    model::GptConfig config;
    config.layers = 2;
    config.hidden = 256;
    config.heads = 4;
    config.context = 256;
    spec_ = model::BuildGptSpec(config);
    layers_ = nn::BuildLayers(spec_, 1, 3);
    for (const model::ParameterSpec& p : spec_.parameters)
      parameters_.push_back(nn::InitialParameter(p, 1, model::Precision::fp32));
    inputs_.sample_ids = {0, 1, 2, 3};
    input_ = at::zeros({4, 256, 256});
    for (int64_t i = 0; i < input_.numel(); ++i)
      input_.data_ptr<float>()[i] = static_cast<float>(i % 97) / 97.0f - 0.5f;
  }

  double Seconds(int passes) const {
    const Clock::time_point start = Clock::now();
    for (int pass = 0; pass < passes; ++pass) {
      nn::LayerContext context;
      context.batch = &inputs_;
      std::vector<at::Tensor> values = {input_.detach().requires_grad_(true)};
      std::vector<at::Tensor> leaves = values;
      for (size_t l = 0; l < layers_.size(); ++l) {
        std::vector<at::Tensor> aliases;
        for (const int p : spec_.layers[l + 1].parameters)
          aliases.push_back(parameters_[p].detach().requires_grad_(true));
        leaves.insert(leaves.end(), aliases.begin(), aliases.end());
        values = layers_[l]->Forward(values, aliases, context);
      }
      torch::autograd::grad({values[0]}, leaves, {at::ones_like(values[0])});
    }
    return std::chrono::duration<double>(Clock::now() - start).count() / passes;
  }

 private:
  model::ModelSpec spec_;
  std::vector<std::unique_ptr<nn::Layer>> layers_;
  std::vector<at::Tensor> parameters_;
  nn::MicroBatchInputs inputs_;
  at::Tensor input_;
};

}  // namespace

SideBySide MeasureSideBySide(int pairs, int passes) {
  SideBySide result;
  std::vector<double> alone(pairs), both(2 * pairs);
  comm::RunThreadRanks(2, {}, [&](comm::Communicator& communicator) {
    const Blocks blocks;
    blocks.Seconds(2);
    uint64_t tag = 0;
    const auto meet = [&] { communicator.Barrier(communicator.world(), {1, tag++})->Wait(); };
    for (int i = 0; i < pairs; ++i) {
      meet();
      if (communicator.rank() == i % 2) alone[i] = blocks.Seconds(passes);  // the other one waits without a core
      meet();
      both[2 * i + communicator.rank()] = blocks.Seconds(passes);
    }
    meet();
  });
  for (int i = 0; i < pairs; ++i) result.ratios.push_back((both[2 * i] + both[2 * i + 1]) / 2 / alone[i]);
  result.alone = Median(alone);
  result.together = Median(both);
  result.slowdown = Median(result.ratios) - 1;
  return result;
}

}  // namespace penstock::session
