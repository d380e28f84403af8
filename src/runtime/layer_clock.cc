#include "runtime/layer_clock.h"

#include <ATen/ATen.h>

namespace penstock::runtime {

void LayerClock::BeginAction(schedule::Kind kind, int32_t micro_batch, int64_t samples) {
  kind_ = kind == schedule::Kind::recompute ? schedule::Kind::forward : kind;
  micro_batch_ = micro_batch;
  micro_batch_samples_ = samples;
  pending_.clear();
}

void LayerClock::Add(int32_t layer, double seconds) {
  for (LayerSample& sample : pending_)
    if (sample.layer == layer) {
      sample.seconds += seconds;
      return;
    }
  pending_.push_back({kind_, layer, micro_batch_, micro_batch_samples_, seconds});
}

void LayerClock::EndAction(double seconds) {
  double layers = 0;
  for (const LayerSample& sample : pending_) layers += sample.seconds;
  samples_.insert(samples_.end(), pending_.begin(), pending_.end());
  samples_.push_back({kind_, -1, micro_batch_, micro_batch_samples_, seconds > layers ? seconds - layers : 0});
  pending_.clear();
}

void LayerClock::HookOutput(at::Tensor& output, int32_t layer) {
  if (!on_ || !output.requires_grad()) return;
  output.register_hook([this, layer](const at::Tensor&) { Mark(layer); });
}

void LayerClock::BeginBackward(int32_t last_layer) {
  current_ = last_layer;
  since_ = Clock::now();
}

void LayerClock::Mark(int32_t layer) {
  // A graph that was made while the clock was on may be differentiated when it is off.
  if (!on_ || current_ < 0 || layer >= current_) return;
  const Clock::time_point now = Clock::now();
  Add(current_, std::chrono::duration<double>(now - since_).count());
  current_ = layer;
  since_ = now;
}

void LayerClock::EndBackward() {
  if (current_ < 0) return;
  Add(current_, std::chrono::duration<double>(Clock::now() - since_).count());
  current_ = -1;
}

}  // namespace penstock::runtime
