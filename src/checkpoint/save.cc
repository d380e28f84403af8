// A save by one writer.
#include "base/error.h"
#include "checkpoint/checkpoint.h"

namespace penstock::checkpoint {
namespace {

void AddPieces(std::vector<Piece>& pieces, Piece::Of of, const TensorSource& source) {
  for (const TensorSpec& spec : source.specs) pieces.push_back({of, spec, 0, spec.numel()});
}

void AppendAll(ShardWriter& writer, const TensorSource& source) {
  for (size_t i = 0; i < source.specs.size(); ++i) {
    const at::Tensor tensor = source.fetch(static_cast<int>(i));
    PENSTOCK_CHECK(tensor.sizes() == source.specs[i].shape, "the source of '{}' delivered another shape",
                   source.specs[i].name);
    writer.Append(tensor);
  }
}

}  // namespace

std::string SaveCheckpoint(const std::string& directory, const TrainState& state, const TensorSource& model,
                           const TensorSource& optimizer, const SaveOptions& options) {
  const PendingCheckpoint pending = BeginCheckpoint(directory, state.step, options.files);
  std::vector<Piece> pieces;
  AddPieces(pieces, Piece::Of::model, model);
  AddPieces(pieces, Piece::Of::optimizer, optimizer);
  ShardRecord shard;
  try {
    ShardWriter writer(options.files, pending.folder, 0, 1, std::move(pieces));
    AppendAll(writer, model);
    AppendAll(writer, optimizer);
    shard = writer.Finish();
  } catch (...) {
    AbandonCheckpoint(pending, options.files);
    throw;
  }
  return PublishCheckpoint(pending, state, {std::move(shard)}, options);
}

}  // namespace penstock::checkpoint
