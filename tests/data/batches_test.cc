#include "data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace penstock::data {
namespace {

std::shared_ptr<const Dataset> Numbered(int64_t n, int64_t length = 4) {
  return std::make_shared<ListDataset>(ListDataset::Numbered(std::vector<int64_t>(static_cast<size_t>(n), length)));
}

std::vector<int64_t> Sizes(const StepBatches& step) {
  std::vector<int64_t> sizes;
  for (const MicroBatchShape& m : step.micro_batches) sizes.push_back(m.samples);
  return sizes;
}

std::vector<int64_t> Ids(const Batches& batches, int64_t step) {
  std::vector<int64_t> ids;
  for (int32_t j = 0; j < batches.micro_batches(); ++j) {
    const MicroBatch m = batches.Materialize(step, j);
    ids.insert(ids.end(), m.sample_ids.begin(), m.sample_ids.end());
  }
  return ids;
}

BatchOptions Options(int64_t batch, int64_t micro_batch) {
  BatchOptions options;
  options.batch = batch;
  options.micro_batch = micro_batch;
  options.seed = 1;
  return options;
}

BatchOptions OptionsOfCount(int64_t batch, int32_t micro_batches) {
  BatchOptions options;
  options.batch = batch;
  options.micro_batches = micro_batches;
  options.allow_ragged = true;
  options.seed = 1;
  return options;
}

// Case A6: a batch that does not divide.
TEST(Batches, RaggedSizesAreSpread) {
  EXPECT_EQ(Sizes(Batches(Numbered(20), OptionsOfCount(8, 3)).MakeStep(0)), (std::vector<int64_t>{3, 3, 2}));
  EXPECT_EQ(Sizes(Batches(Numbered(20), OptionsOfCount(7, 3)).MakeStep(0)), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(Sizes(Batches(Numbered(20), OptionsOfCount(2, 3)).MakeStep(0)), (std::vector<int64_t>{1, 1, 0}));
  BatchOptions by_size = Options(8, 3);
  by_size.allow_ragged = true;
  EXPECT_EQ(Sizes(Batches(Numbered(20), by_size).MakeStep(0)), (std::vector<int64_t>{3, 3, 2}));
}

TEST(Batches, AnEmptyMicroBatchHasNoRows) {
  const Batches batches(Numbered(20), OptionsOfCount(2, 3));
  const MicroBatch empty = batches.Materialize(0, 2);
  EXPECT_EQ(empty.first_slot, 2);
  EXPECT_EQ(empty.samples, 0);
  EXPECT_EQ(empty.length, 0);
  EXPECT_TRUE(empty.tokens.empty() && empty.labels.empty() && empty.sample_ids.empty());
}

std::string Refusal(const BatchOptions& options) {
  try {
    CountMicroBatches(options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Batches, RefusesWhatDoesNotDivideAndSaysWhatWorks) {
  EXPECT_EQ(
      Refusal(Options(8, 3)),
      "a batch of 8 samples does not divide into micro-batches of 3; sizes that work: 1, 2, 4, 8; or a batch of 6 "
      "or 9; or allow micro-batches of unequal size (data.ragged = true)");
  BatchOptions count = OptionsOfCount(2, 3);
  count.allow_ragged = false;
  EXPECT_EQ(
      Refusal(count),
      "a batch of 2 samples does not divide into 3 equal micro-batches; numbers that work: 1, 2; or a batch of 3; "
      "or allow micro-batches of unequal size (data.ragged = true)");
  EXPECT_EQ(Refusal(Options(8, 2)), "accepted");
  EXPECT_EQ(CountMicroBatches(Options(8, 2)), 4);
}

// Case A5: lengths that differ inside one step; each micro-batch is padded to its own longest sample.
TEST(Batches, EachMicroBatchHasItsOwnLength) {
  BatchOptions options = Options(8, 2);
  options.shuffle = false;
  const Batches batches(std::make_shared<ListDataset>(ListDataset::Numbered({16, 2, 16, 16, 10, 9, 1, 3})), options);
  const StepBatches step = batches.MakeStep(0);
  std::vector<int64_t> lengths, valid;
  for (const MicroBatchShape& m : step.micro_batches) {
    lengths.push_back(m.length);
    valid.push_back(m.valid_tokens);
  }
  EXPECT_EQ(lengths, (std::vector<int64_t>{16, 16, 10, 3}));
  EXPECT_EQ(valid, (std::vector<int64_t>{18, 32, 19, 4}));
  EXPECT_EQ(step.valid_tokens, 73);
  EXPECT_EQ(step.padded_tokens, 2 * (16 + 16 + 10 + 3));
  const MicroBatch last = batches.Materialize(0, 3);
  EXPECT_EQ(last.lengths, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(last.tokens, (std::vector<int32_t>{6, 0, 0, 7, 7, 7}));
  EXPECT_EQ(last.labels, (std::vector<int32_t>{6, -100, -100, 7, 7, 7}));
}

// Case A9: valid tokens 16, 1, 5, 0; the divisor of the loss is 22 whoever asks.
TEST(Batches, CountsValidTokensOfTheWholeStep) {
  std::vector<Sample> samples;
  for (const int valid : {16, 1, 5, 0}) {
    Sample sample{std::vector<int32_t>(16, 1), std::vector<int32_t>(16, kIgnoredLabel)};
    std::fill_n(sample.labels.begin(), valid, 1);
    samples.push_back(sample);
  }
  BatchOptions options = Options(4, 1);
  options.shuffle = false;
  const Batches batches(std::make_shared<ListDataset>(samples), options);
  const StepBatches step = batches.MakeStep(0);
  EXPECT_EQ(step.valid_tokens, 22);
  EXPECT_EQ(step.micro_batches[3].valid_tokens, 0);
  const Batches masked(std::make_shared<ListDataset>(std::vector<Sample>{samples[3]}), Options(1, 1));
  EXPECT_THROW(masked.MakeStep(0), UserError);
}

// The samples of a step do not depend on how it is cut, and labels stay with their tokens (cases A3, E2, E4).
TEST(Batches, SameSamplesForEverySplit) {
  const auto data = Numbered(37);
  for (const int64_t step : {0, 1, 7, 1000}) {
    const std::vector<int64_t> whole = Ids(Batches(data, Options(12, 12)), step);
    for (const int64_t micro_batch : {1, 2, 3, 4, 6}) {
      const Batches batches(data, Options(12, micro_batch));
      EXPECT_EQ(Ids(batches, step), whole) << step << " " << micro_batch;
      for (int32_t j = 0; j < batches.micro_batches(); ++j) {
        const MicroBatch m = batches.Materialize(step, j);
        EXPECT_EQ(m.first_slot, j * micro_batch);
        EXPECT_EQ(m.tokens, m.labels);
        for (size_t b = 0; b < m.sample_ids.size(); ++b)
          EXPECT_EQ(m.tokens[b * static_cast<size_t>(m.length)], m.sample_ids[b] % 37);
      }
    }
  }
}

TEST(Batches, GoldenOrder) {
  EXPECT_EQ(Ids(Batches(Numbered(16), Options(8, 4)), 0), (std::vector<int64_t>{10, 2, 5, 8, 1, 14, 6, 3}));
  EXPECT_EQ(Ids(Batches(Numbered(16), Options(8, 4)), 1), (std::vector<int64_t>{0, 7, 15, 13, 4, 11, 12, 9}));
}

// Every policy: an epoch has each sample at most once, wrap and ragged exactly once, and the next epoch another order.
TEST(Batches, EpochsCoverTheData) {
  for (const int64_t n : {1, 5, 8, 13, 24}) {
    for (const LastBatch policy : {LastBatch::kWrap, LastBatch::kDrop, LastBatch::kRagged}) {
      BatchOptions options = Options(8, 2);
      options.last_batch = policy;
      if (policy == LastBatch::kDrop && n < 8) {
        EXPECT_THROW(Batches(Numbered(n), options), UserError);
        continue;
      }
      const Batches batches(Numbered(n), options);
      std::vector<int64_t> ids;
      for (int64_t step = 0; step < 30; ++step) {
        const std::vector<int64_t> of_step = Ids(batches, step);
        EXPECT_EQ(static_cast<int64_t>(of_step.size()), batches.MakeStep(step).samples);
        ids.insert(ids.end(), of_step.begin(), of_step.end());
      }
      EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), ids.size());
      EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end(), [&](int64_t a, int64_t b) { return a / n < b / n; }));
      const int64_t per_epoch = policy == LastBatch::kDrop ? n / 8 * 8 : n;
      const int64_t epochs = static_cast<int64_t>(ids.size()) / per_epoch;
      for (int64_t e = 0; e < epochs; ++e) {
        const int64_t count = std::count_if(ids.begin(), ids.end(), [&](int64_t id) { return id / n == e; });
        EXPECT_EQ(count, per_epoch) << n << " epoch " << e;
      }
    }
  }
}

TEST(Batches, ARaggedEpochEndsShort) {
  BatchOptions options = Options(8, 2);
  options.last_batch = LastBatch::kRagged;
  const Batches batches(Numbered(13), options);
  EXPECT_EQ(batches.steps_per_epoch(), 2);
  EXPECT_EQ(Sizes(batches.MakeStep(0)), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(Sizes(batches.MakeStep(1)), (std::vector<int64_t>{2, 1, 1, 1}));
  EXPECT_EQ(Sizes(batches.MakeStep(2)), (std::vector<int64_t>{2, 2, 2, 2}));
  EXPECT_EQ(batches.MakeStep(2).epoch, 1);
  options.batch = 6;
  const Batches nearly_empty(Numbered(13), options);
  EXPECT_EQ(Sizes(nearly_empty.MakeStep(2)), (std::vector<int64_t>{1, 0, 0}));
}

// Nothing is carried from step to step, so a run resumed at any step goes on as the uninterrupted one.
TEST(Batches, AnyStepAloneEqualsTheStepInARun) {
  const auto data = Numbered(29);
  std::vector<std::vector<int64_t>> run;
  const Batches first(data, Options(8, 4));
  for (int64_t step = 0; step < 20; ++step) run.push_back(Ids(first, step));
  for (int64_t step = 19; step >= 0; --step)
    EXPECT_EQ(Ids(Batches(data, Options(8, 4)), step), run[static_cast<size_t>(step)]);
}

TEST(Batches, HugeStepsAreReachedDirectly) {
  const Batches batches(Numbered(29), Options(8, 4));
  EXPECT_EQ(batches.MakeStep(int64_t{1} << 50).samples, 8);
  EXPECT_THROW(batches.MakeStep(INT64_MAX), InternalError);
}

}  // namespace
}  // namespace penstock::data
