#include "optim/optimizer.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"

namespace penstock::optim {
namespace {

at::Tensor Random(int64_t n, at::ScalarType dtype, std::mt19937_64& rng) {
  std::normal_distribution<double> normal;
  at::Tensor t = at::empty({n}, at::kDouble);
  for (int64_t i = 0; i < n; ++i) t.mutable_data_ptr<double>()[i] = normal(rng);
  return t.to(dtype);
}

// The variants every registered optimizer is tried with; keys it does not have are ignored by it.
std::vector<OptimizerConfig> Variants(const std::string& name) {
  OptimizerConfig plain{.name = name, .weight_decay = 0.0};
  OptimizerConfig decay{.name = name, .weight_decay = 0.1};
  OptimizerConfig momentum{.name = name, .momentum = 0.9, .weight_decay = 0.1};
  OptimizerConfig nesterov{.name = name, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1};
  return {plain, decay, momentum, nesterov};
}

UpdateInput Input(int64_t update) {
  return {.update = update, .learning_rate = 0.01 / static_cast<double>(update), .gradient_scale = 0.37f};
}

TEST(OptimizerRegistry, Names) { EXPECT_EQ(Registry<Optimizer>::Names(), (std::vector<std::string>{"adamw", "sgd"})); }

// What plans count with is what the optimizers keep.
TEST(OptimizerRegistry, StatesPerParameterAreWhatPlansSay) {
  for (const std::string& name : Registry<Optimizer>::Names())
    for (const double momentum : {0.0, 0.9}) {
      OptimizerConfig config;
      config.name = name;
      config.momentum = momentum;
      EXPECT_EQ(Registry<Optimizer>::Find(name).states(config).size(), StatesPerParameter(config)) << name << momentum;
    }
}

// Numerics test 2, over every registered optimizer: any partition of [0, n) gives the bits of the whole.
TEST(OptimizerRegistry, AnyPartitionEqualsTheWhole) {
  std::mt19937_64 rng(1);
  int compared = 0;
  for (const auto& [name, optimizer] : Registry<Optimizer>::All()) {
    for (const OptimizerConfig& config : Variants(name)) {
      for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
        for (const int64_t n : {1, 7, 64, 1000, 1037}) {
          at::Tensor whole = Random(n, dtype, rng), cut = whole.clone(), pieces = whole.clone();
          OptimizerState whole_state(optimizer, config, n, dtype), cut_state(optimizer, config, n, dtype);
          // Shards with a state of their own, as under ZeRO.
          std::vector<int64_t> borders{0};
          while (borders.back() < n)
            borders.push_back(std::min(n, borders.back() + 1 + static_cast<int64_t>(rng() % n)));
          std::vector<OptimizerState> shard_states;
          for (size_t i = 0; i + 1 < borders.size(); ++i)
            shard_states.emplace_back(optimizer, config, borders[i + 1] - borders[i], dtype);
          for (int64_t update = 1; update <= 3; ++update) {
            const at::Tensor gradient = Random(n, dtype, rng);
            Update(optimizer, config, Input(update), whole, gradient, whole_state);
            for (int64_t begin = 0; begin < n;) {
              const int64_t end = std::min(n, begin + 1 + static_cast<int64_t>(rng() % 40));
              Update(optimizer, config, Input(update), cut, gradient, cut_state, begin, end);
              begin = end;
            }
            for (size_t i = 0; i + 1 < borders.size(); ++i)
              Update(optimizer, config, Input(update), pieces.slice(0, borders[i], borders[i + 1]),
                     gradient.slice(0, borders[i], borders[i + 1]), shard_states[i]);
          }
          ASSERT_TRUE(whole.equal(cut)) << name << " " << n;
          ASSERT_TRUE(whole.equal(pieces)) << name << " " << n;
          for (int i = 0; i < whole_state.size(); ++i)
            ASSERT_TRUE(whole_state.tensor(i).equal(cut_state.tensor(i))) << name << " " << whole_state.name(i);
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 2 * 4 * 2 * 5);
}

TEST(AdamW, AgreesWithLibtorch) {
  std::mt19937_64 rng(2);
  const Optimizer& optimizer = Registry<Optimizer>::Find("adamw");
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const OptimizerConfig config{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1};
    at::Tensor ours = Random(513, dtype, rng), theirs = ours.clone();
    OptimizerState state(optimizer, config, 513, dtype);
    at::Tensor m = at::zeros_like(ours), v = at::zeros_like(ours), count = at::zeros({}, at::kFloat);
    for (int64_t update = 1; update <= 20; ++update) {
      const at::Tensor gradient = Random(513, dtype, rng);
      const double lr = 0.01 * static_cast<double>(update);
      Update(optimizer, config, {.update = update, .learning_rate = lr}, ours, gradient, state);
      count += 1;  // libtorch's caller counts
      std::vector<at::Tensor> p{theirs}, g{gradient}, ms{m}, vs{v}, none{}, steps{count};
      at::_fused_adamw_(p, g, ms, vs, none, steps, lr, config.beta1, config.beta2, config.weight_decay, config.eps,
                        /*amsgrad=*/false, /*maximize=*/false);
    }
    const double tolerance = dtype == at::kFloat ? 1e-5 : 1e-13;
    EXPECT_TRUE(ours.allclose(theirs, tolerance, tolerance)) << (ours - theirs).abs().max().item<double>();
    EXPECT_TRUE(state.tensor(0).allclose(m, tolerance, tolerance));
    EXPECT_TRUE(state.tensor(1).allclose(v, tolerance, tolerance));
  }
}

TEST(Sgd, AgreesWithLibtorch) {
  std::mt19937_64 rng(3);
  const Optimizer& optimizer = Registry<Optimizer>::Find("sgd");
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const OptimizerConfig& config : Variants("sgd")) {
      at::Tensor ours = Random(513, dtype, rng), theirs = ours.clone();
      OptimizerState state(optimizer, config, 513, dtype);
      at::Tensor buffer = at::zeros_like(ours);
      for (int64_t update = 1; update <= 20; ++update) {
        const at::Tensor gradient = Random(513, dtype, rng);
        Update(optimizer, config, {.update = update, .learning_rate = 0.02}, ours, gradient, state);
        std::vector<at::Tensor> p{theirs}, g{gradient}, b;
        if (config.momentum != 0.0) b.push_back(buffer);
        at::_fused_sgd_(p, g, b, config.weight_decay, config.momentum, /*lr=*/0.02, /*dampening=*/0.0, config.nesterov,
                        /*maximize=*/false, /*is_first_step=*/update == 1);
      }
      const double tolerance = dtype == at::kFloat ? 1e-5 : 1e-13;
      EXPECT_TRUE(ours.allclose(theirs, tolerance, tolerance)) << (ours - theirs).abs().max().item<double>();
    }
  }
}

// One step by hand: m = 0.1 g, v = 0.001 g^2, both corrected to g and g^2, so the step is lr sign(g).
TEST(AdamW, FirstStepIsTheSignOfTheGradient) {
  const Optimizer& optimizer = Registry<Optimizer>::Find("adamw");
  const OptimizerConfig config{.eps = 0.0, .weight_decay = 0.5};
  at::Tensor p = at::full({2}, 1.0, at::kDouble);
  at::Tensor g = at::full({2}, 3.0, at::kDouble);
  g.mutable_data_ptr<double>()[1] = -1e-3;
  OptimizerState state(optimizer, config, 2, at::kDouble);
  Update(optimizer, config, {.update = 1, .learning_rate = 0.1}, p, g, state);
  EXPECT_NEAR(p.const_data_ptr<double>()[0], 0.95 - 0.1, 1e-14);
  EXPECT_NEAR(p.const_data_ptr<double>()[1], 0.95 + 0.1, 1e-14);
  Update(optimizer, config, {.update = 2, .learning_rate = 0.0, .decay = false}, p, g, state);
  EXPECT_NEAR(p.const_data_ptr<double>()[0], 0.85, 1e-14);
}

TEST(OptimizerState, NamesBytesAlignment) {
  const OptimizerConfig config{.momentum = 0.9};
  const OptimizerState adamw(Registry<Optimizer>::Find("adamw"), config, 5, at::kFloat);
  EXPECT_EQ(adamw.name(0), "adamw.m");
  EXPECT_EQ(adamw.name(1), "adamw.v");
  EXPECT_EQ(adamw.bytes(), 40);
  EXPECT_EQ(OptimizerState(Registry<Optimizer>::Find("sgd"), config, 5, at::kDouble).bytes(), 40);
  EXPECT_EQ(OptimizerState(Registry<Optimizer>::Find("sgd"), {}, 5, at::kDouble).size(), 0);
  EXPECT_EQ(OptimizerState(Registry<Optimizer>::Find("adamw"), config, 0, at::kFloat).bytes(), 0);
}

TEST(Update, MismatchesAreErrors) {
  const Optimizer& optimizer = Registry<Optimizer>::Find("adamw");
  const OptimizerConfig config;
  OptimizerState state(optimizer, config, 4, at::kFloat);
  const at::Tensor p = at::ones({4});
  EXPECT_THROW(Update(optimizer, config, Input(1), p, at::ones({5}), state), InternalError);
  EXPECT_THROW(Update(optimizer, config, Input(1), p, at::ones({4}, at::kDouble), state), InternalError);
  EXPECT_THROW(Update(optimizer, config, Input(0), p, at::ones({4}), state), InternalError);
  EXPECT_THROW(Update(optimizer, config, Input(1), at::ones({3}), at::ones({3}), state), InternalError);
}

TEST(Decay, MatricesOnlyByDefault) {
  EXPECT_TRUE(DecayApplies({}, 2));
  EXPECT_FALSE(DecayApplies({}, 1));
  EXPECT_TRUE(DecayApplies({.decay = "all"}, 1));
}

}  // namespace
}  // namespace penstock::optim
