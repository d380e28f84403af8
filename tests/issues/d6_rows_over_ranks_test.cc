// Case D6: parameters of 1, 3, 6 and 7 elements over 4 ranks, and one without any. Shards may be empty; what 4 ranks
// contribute is stored as whole tensors, and any other number of ranks reads its shards back.
// https://github.com/pytorch/pytorch/issues/108869

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "comm/shards.h"

namespace penstock {
namespace {

TEST(IssueD6, OddSizesOverFourRanks) {
  const std::string directory = testing::TempDir() + "penstock-d6";
  std::filesystem::remove_all(directory);
  const std::vector<int64_t> sizes{1, 3, 6, 7, 0};
  checkpoint::TensorSource source;
  for (const int64_t n : sizes) source.specs.push_back({"p" + std::to_string(n), at::kFloat, {n}});
  source.fetch = [&](int p) {
    const std::vector<int64_t> bounds = comm::ShardBounds(sizes[p], 4);
    std::vector<at::Tensor> shards;
    for (int rank = 0; rank < 4; ++rank)
      shards.push_back(at::arange(bounds[rank], bounds[rank + 1], at::kFloat) + static_cast<double>(p));
    return at::cat(shards);
  };
  const std::string path = checkpoint::SaveCheckpoint(directory, {.step = 1}, source, checkpoint::FromMemory({}));
  const checkpoint::Checkpoint loaded(path);
  loaded.Verify();
  // The same, each rank with its own shard file: the third and fourth have nothing of the smallest.
  const checkpoint::PendingCheckpoint pending = checkpoint::BeginCheckpoint(directory, 2);
  std::vector<checkpoint::ShardRecord> records;
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<checkpoint::Piece> pieces;
    std::vector<at::Tensor> contents;
    for (size_t p = 0; p < sizes.size(); ++p) {
      const std::vector<int64_t> bounds = comm::ShardBounds(sizes[p], 4);
      if (bounds[rank] == bounds[rank + 1] && !(sizes[p] == 0 && rank == 0)) continue;
      pieces.push_back({checkpoint::Piece::Of::model, source.specs[p], bounds[rank], bounds[rank + 1]});
      contents.push_back(at::arange(bounds[rank], bounds[rank + 1], at::kFloat) + static_cast<double>(p));
    }
    checkpoint::ShardWriter writer(FileSystem::Real(), pending.folder, rank, 4, pieces);
    for (const at::Tensor& tensor : contents) writer.Append(tensor);
    records.push_back(writer.Finish());
  }
  const checkpoint::Checkpoint sharded(checkpoint::PublishCheckpoint(pending, {.step = 2}, records, {}));
  sharded.Verify();
  for (size_t p = 0; p < sizes.size(); ++p) {
    EXPECT_TRUE(sharded.ReadModel(source.specs[p]).equal(loaded.ReadModel(source.specs[p])));
    EXPECT_EQ(sharded.WholeHash(sharded.model().at(source.specs[p].name)),
              loaded.WholeHash(loaded.model().at(source.specs[p].name)));
  }
  for (size_t p = 0; p < sizes.size(); ++p) {
    const at::Tensor whole = at::arange(sizes[p], at::kFloat) + static_cast<double>(p);
    EXPECT_TRUE(loaded.ReadModel(source.specs[p]).equal(whole));
    for (const int ranks : {1, 2, 3, 6}) {
      const std::vector<int64_t> bounds = comm::ShardBounds(sizes[p], ranks);
      for (int rank = 0; rank < ranks; ++rank)
        for (const checkpoint::Checkpoint* from : {&loaded, &sharded})
          EXPECT_TRUE(from->ReadModelElements(source.specs[p], bounds[rank], bounds[rank + 1] - bounds[rank])
                          .equal(whole.slice(0, bounds[rank], bounds[rank + 1])));
    }
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace penstock
