#include "checkpoint/loss_scale_record.h"

#include <charconv>
#include <string>

#include "base/error.h"

namespace penstock::checkpoint {
namespace {

constexpr const char* kClean = "numerics.loss_scale_clean";
constexpr const char* kInARow = "numerics.skipped_in_a_row";
constexpr const char* kSkipped = "numerics.skipped";

int64_t CountOf(const TrainState& state, const char* key) {
  const auto at = state.extra.find(key);
  if (at == state.extra.end()) throw UserError("the record of the loss scale has no '{}'", key);
  int64_t value = 0;
  const char* const end = at->second.data() + at->second.size();
  const auto [stopped, error] = std::from_chars(at->second.data(), end, value);
  if (error != std::errc() || stopped != end || value < 0)
    throw UserError("'{}' = '{}' in the record of the loss scale is no count", key, at->second);
  return value;
}

}  // namespace

void PutLossScale(const LossScaleState& scale, TrainState& state) {
  state.loss_scale = scale.scale;
  state.extra[kClean] = std::to_string(scale.clean);
  state.extra[kInARow] = std::to_string(scale.skipped_in_a_row);
  state.extra[kSkipped] = std::to_string(scale.skipped);
}

std::optional<LossScaleState> GetLossScale(const TrainState& state) {
  if (!state.extra.contains(kClean) && !state.extra.contains(kInARow) && !state.extra.contains(kSkipped)) return {};
  if (!IsPowerOfTwo(state.loss_scale)) throw UserError("a loss scale of {} is no power of two", state.loss_scale);
  return LossScaleState{state.loss_scale, CountOf(state, kClean), CountOf(state, kInARow), CountOf(state, kSkipped)};
}

}  // namespace penstock::checkpoint
