#include "base/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace penstock {

bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return std::isfinite(value) && value > 0 && std::frexp(value, &exponent) == 0.5;
}

void LossScaleConfig::Declare(config::Section& s, const std::function<bool()>& enabled_here,
                              const std::string& enabled_text) {
  const auto dynamic = [this, enabled_here] { return enabled_here() && mode == "dynamic"; };
  const std::string dynamic_text = enabled_text + " and numerics.loss_scale = 'dynamic'";
  s.String("loss_scale", &mode,
           {.choices = {"dynamic", "static"},
            .help = "of fp16: reduced when a gradient is not finite, and grown again; or always the initial one",
            .only_if = enabled_here,
            .only_if_text = enabled_text});
  // fp32 holds the scaled gradients: 2^40 leaves as much room above them as they ever need.
  s.Real(
      "loss_scale_initial", &initial,
      {.min = 0x1p-40, .max = 0x1p40, .help = "a power of two", .only_if = enabled_here, .only_if_text = enabled_text});
  s.Real("loss_scale_growth", &growth,
         {.min = 1.0,
          .max = 1024.0,
          .help = "factor when it grows, a power of two",
          .only_if = dynamic,
          .only_if_text = dynamic_text});
  s.Real("loss_scale_backoff", &backoff,
         {.min = 0x1p-10,
          .below = 1.0,
          .help = "factor when a gradient is not finite, a power of two",
          .only_if = dynamic,
          .only_if_text = dynamic_text});
  s.Int("loss_scale_interval", &interval,
        {.min = 1,
         .help = "updates in a row after which it grows",
         .unit = "steps",
         .only_if = dynamic,
         .only_if_text = dynamic_text});
  s.Real("loss_scale_min", &minimum,
         {.min = 0x1p-40,
          .max = 0x1p40,
          .help = "it is never smaller; a power of two",
          .only_if = dynamic,
          .only_if_text = dynamic_text});
  s.Real("loss_scale_max", &maximum,
         {.min = 0x1p-40,
          .max = 0x1p40,
          .help = "it is never larger; a power of two",
          .only_if = dynamic,
          .only_if_text = dynamic_text});
  s.Int("loss_scale_max_skipped", &max_skipped,
        {.min = 1,
         .help = "updates left out in a row before the run ends",
         .unit = "steps",
         .only_if = enabled_here,
         .only_if_text = enabled_text});
  const auto power = [&s](const char* key, const double* value) {
    s.Require({key}, [value]() -> std::string {
      return IsPowerOfTwo(*value) ? "" : fmt::format("{} is no power of two, and would round gradients", *value);
    });
  };
  power("loss_scale_initial", &initial);
  power("loss_scale_growth", &growth);
  power("loss_scale_backoff", &backoff);
  power("loss_scale_min", &minimum);
  power("loss_scale_max", &maximum);
  s.Require({"loss_scale_initial", "loss_scale_min", "loss_scale_max"}, [this]() -> std::string {
    if (mode != "dynamic" || (minimum <= initial && initial <= maximum)) return "";
    return fmt::format("the initial scale {} is not between {} and {}", initial, minimum, maximum);
  });
}

LossScale::LossScale(const LossScaleConfig& config) : config_(config) {
  state_.scale = config.enabled ? config.initial : 1.0;
}

LossScale::LossScale(const LossScaleConfig& config, const LossScaleState& state) : config_(config), state_(state) {
  if (!IsPowerOfTwo(state.scale)) throw UserError("a loss scale of {} is no power of two", state.scale);
  if (state.clean < 0 || state.skipped_in_a_row < 0 || state.skipped < state.skipped_in_a_row)
    throw UserError("the counts of the loss scale ({}, {}, {}) are impossible", state.clean, state.skipped_in_a_row,
                    state.skipped);
}

void LossScale::After(Step step) {
  const bool dynamic = config_.enabled && config_.mode == "dynamic";
  if (step != Step::applied) {
    ++state_.skipped;
    ++state_.skipped_in_a_row;
    state_.clean = 0;
    if (dynamic && step == Step::gradient_not_finite)
      state_.scale = std::max(config_.minimum, state_.scale * config_.backoff);
    return;
  }
  state_.skipped_in_a_row = 0;
  if (!dynamic || ++state_.clean < config_.interval) return;
  state_.clean = 0;
  state_.scale = std::min(config_.maximum, state_.scale * config_.growth);
}

}  // namespace penstock
