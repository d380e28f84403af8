#include "checkpoint/shard_writer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/directory.h"
#include "checkpoint/safetensors_header.h"
#include "checkpoint/tensor_hash.h"

namespace penstock::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

TensorSpec SpecOf(const Piece& piece) { return PieceSpec(piece.tensor, piece.begin, piece.end); }

}  // namespace

int64_t Piece::bytes() const { return (end - begin) * static_cast<int64_t>(c10::elementSize(tensor.dtype)); }

ShardWriter::ShardWriter(FileSystem& files, const std::string& folder, int shard, int shards,
                         std::vector<Piece> pieces) {
  record_.file.name = ShardName(shard, shards);
  record_.pieces = std::move(pieces);
  std::vector<TensorSpec> specs;
  for (const Piece& piece : record_.pieces) {
    specs.push_back(SpecOf(piece));
    record_.file.bytes += piece.bytes();
  }
  // "pt" is what other readers of the format expect of row-major tensors.
  const std::string header = FormatSafetensorsHeader(specs, {{"format", "pt"}});
  record_.file.bytes += static_cast<int64_t>(header.size());
  record_.file.header_hash = Hash(header).Hex();
  file_ = files.Create(folder + "/" + record_.file.name);
  file_->Append(header);
}

void ShardWriter::Append(const at::Tensor& tensor) {
  PENSTOCK_CHECK(record_.hashes.size() < record_.pieces.size(), "a shard of {} pieces is full", record_.pieces.size());
  const Piece& piece = record_.pieces[record_.hashes.size()];
  const at::Tensor rows = tensor.contiguous();
  PENSTOCK_CHECK(rows.is_cpu() && rows.scalar_type() == piece.tensor.dtype && rows.numel() == piece.end - piece.begin,
                 "piece [{}, {}) of '{}' came in another type or length", piece.begin, piece.end, piece.tensor.name);
  const std::string_view bytes(static_cast<const char*>(rows.const_data_ptr()), rows.nbytes());
  TensorHasher hasher(SpecOf(piece));
  hasher.Add(bytes);
  record_.hashes.push_back(hasher.Finish());
  file_->Append(bytes);
}

ShardRecord ShardWriter::Finish() {
  PENSTOCK_CHECK_EQ(record_.hashes.size(), record_.pieces.size());
  file_->Sync();
  file_->Close();
  return std::move(record_);
}

std::string FormatShardRecord(const ShardRecord& record) {
  Json pieces = Json::array();
  for (size_t i = 0; i < record.pieces.size(); ++i) {
    const Piece& piece = record.pieces[i];
    pieces.push_back({piece.of == Piece::Of::model, piece.tensor.name, SafetensorsDtype(piece.tensor.dtype),
                      piece.tensor.shape, piece.begin, piece.end, record.hashes[i]});
  }
  const StoredFile& file = record.file;
  return Json{{"name", file.name}, {"bytes", file.bytes}, {"header_hash", file.header_hash}, {"pieces", pieces}}.dump();
}

ShardRecord ParseShardRecord(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    ShardRecord record;
    record.file = {json.at("name"), json.at("bytes"), json.at("header_hash")};
    for (const Json& p : json.at("pieces")) {
      Piece piece;
      piece.of = p.at(0).get<bool>() ? Piece::Of::model : Piece::Of::optimizer;
      piece.tensor = {p.at(1), ParseSafetensorsDtype(p.at(2).get<std::string>()), p.at(3)};
      piece.begin = p.at(4);
      piece.end = p.at(5);
      record.pieces.push_back(std::move(piece));
      record.hashes.push_back(p.at(6));
    }
    return record;
  } catch (const nlohmann::json::exception& e) {
    throw InternalError(fmt::format("a shard's record cannot be read: {}", e.what()));
  }
}

}  // namespace penstock::checkpoint
