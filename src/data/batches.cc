#include "data/batches.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "data/order.h"

namespace penstock::data {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int64_t CheckedMultiply(int64_t a, int64_t b) {
  int64_t product;
  PENSTOCK_CHECK(!__builtin_mul_overflow(a, b, &product), "{} * {} samples overflow", a, b);
  return product;
}

// The divisors of n nearest to `wanted`, at most six.
std::vector<int64_t> NearDivisors(int64_t n, int64_t wanted) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    divisors.push_back(d);
    if (d != n / d) divisors.push_back(n / d);
  }
  std::sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    const int64_t da = std::abs(a - wanted), db = std::abs(b - wanted);
    return da != db ? da < db : a < b;
  });
  if (divisors.size() > 6) divisors.resize(6);
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

}  // namespace

int32_t CountMicroBatches(const BatchOptions& options) {
  const int64_t batch = options.batch;
  PENSTOCK_CHECK(batch >= 1 && (options.micro_batch >= 1) != (options.micro_batches >= 1),
                 "batch {}, micro-batch {}, micro-batches {}", batch, options.micro_batch, options.micro_batches);
  const bool by_size = options.micro_batch >= 1;
  const int64_t divisor = by_size ? options.micro_batch : options.micro_batches;
  if (batch % divisor != 0 && !options.allow_ragged) {
    const int64_t below = batch / divisor * divisor;
    const std::string wanted =
        by_size ? fmt::format("micro-batches of {}", divisor) : fmt::format("{} equal micro-batches", divisor);
    throw UserError(
        "a batch of {} samples does not divide into {}; {} that work: {}; or a batch of {}{}; or allow micro-batches "
        "of "
        "unequal size (data.ragged = true)",
        batch, wanted, by_size ? "sizes" : "numbers", fmt::join(NearDivisors(batch, divisor), ", "),
        below > 0 ? fmt::format("{} or ", below) : "", below + divisor);
  }
  const int64_t count = by_size ? CeilDivide(batch, divisor) : divisor;
  PENSTOCK_CHECK(count <= INT32_MAX, "{} micro-batches", count);
  return static_cast<int32_t>(count);
}

Batches::Batches(std::shared_ptr<const Dataset> dataset, const BatchOptions& options)
    : dataset_(std::move(dataset)), options_(options), micro_batches_(CountMicroBatches(options)) {
  const int64_t n = dataset_->size();
  if (n < 1) throw UserError("the data has no sample");
  if (dataset_->endless()) options_.last_batch = LastBatch::kWrap;
  if (options_.last_batch == LastBatch::kDrop) {
    steps_per_epoch_ = n / options_.batch;
    if (steps_per_epoch_ == 0)
      throw UserError(
          "last_batch = 'drop' leaves no step: the data has {} samples, less than one batch of {}; use a "
          "smaller batch, 'wrap' or 'ragged'",
          n, options_.batch);
  } else {
    steps_per_epoch_ = CeilDivide(n, options_.batch);
  }
}

int64_t Batches::SamplesOf(int64_t step) const {
  if (options_.last_batch != LastBatch::kRagged) return options_.batch;
  return std::min(options_.batch, dataset_->size() - step % steps_per_epoch_ * options_.batch);
}

int64_t Batches::SampleId(int64_t step, int64_t slot) const {
  PENSTOCK_CHECK(step >= 0 && slot >= 0 && slot < SamplesOf(step), "slot {} of step {}", slot, step);
  const int64_t n = dataset_->size();
  int64_t epoch, position;
  if (options_.last_batch == LastBatch::kWrap) {
    const int64_t at = CheckedMultiply(step, options_.batch) + slot;
    if (dataset_->endless()) return at;
    epoch = at / n;
    position = at % n;
  } else {
    epoch = step / steps_per_epoch_;
    position = step % steps_per_epoch_ * options_.batch + slot;
  }
  const int64_t index = options_.shuffle ? KeyedPermutation(n, options_.seed, epoch)(position) : position;
  return CheckedMultiply(epoch, n) + index;
}

StepBatches Batches::MakeStep(int64_t step) const {
  StepBatches out;
  out.step = step;
  out.samples = SamplesOf(step);
  out.epoch = SampleId(step, 0) / dataset_->size();
  int64_t slot = 0;
  for (int32_t j = 0; j < micro_batches_; ++j) {
    MicroBatchShape shape;
    shape.index = j;
    shape.first_slot = slot;
    shape.samples = out.samples / micro_batches_ + (j < out.samples % micro_batches_);
    for (int64_t b = 0; b < shape.samples; ++b, ++slot) {
      const int64_t index = IndexOf(SampleId(step, slot));
      shape.length = std::max(shape.length, dataset_->Length(index));
      shape.valid_tokens += dataset_->ValidTokens(index);
    }
    out.valid_tokens += shape.valid_tokens;
    out.padded_tokens += shape.samples * shape.length;
    out.micro_batches.push_back(shape);
  }
  if (out.valid_tokens == 0)
    throw UserError(
        "step {} has {} samples but not one label that counts: its loss would be 0/0; use a larger batch or "
        "mask fewer labels",
        step, out.samples);
  return out;
}

MicroBatch Batches::Materialize(int64_t step, int32_t j) const { return Materialize(MakeStep(step), j); }

MicroBatch Batches::Materialize(const StepBatches& step, int32_t j) const {
  PENSTOCK_CHECK(j >= 0 && j < micro_batches_, "micro-batch {} of {}", j, micro_batches_);
  MicroBatch out;
  static_cast<MicroBatchShape&>(out) = step.micro_batches[static_cast<size_t>(j)];
  const auto elements = static_cast<size_t>(CheckedMultiply(out.samples, out.length));
  out.tokens.assign(elements, options_.pad_token);
  out.labels.assign(elements, kIgnoredLabel);
  for (int64_t b = 0; b < out.samples; ++b) {
    const int64_t id = SampleId(step.step, out.first_slot + b);
    const Sample sample = dataset_->Get(IndexOf(id));
    const int64_t row = b * out.length;
    PENSTOCK_CHECK(static_cast<int64_t>(sample.tokens.size()) <= out.length, "sample {} is longer than it said", id);
    std::copy(sample.tokens.begin(), sample.tokens.end(), out.tokens.begin() + row);
    std::copy(sample.labels.begin(), sample.labels.end(), out.labels.begin() + row);
    out.sample_ids.push_back(id);
    out.lengths.push_back(static_cast<int64_t>(sample.tokens.size()));
  }
  return out;
}

}  // namespace penstock::data
