// A thousand damaged checkpoints: every one is refused, with the tensor named where the damage is in a shard file, and
// a search for the newest valid one passes it over.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "checkpoint/temporary_directory.h"
#include "comm/shards.h"

namespace penstock::checkpoint {
namespace {

constexpr int kRanks = 3;

// Three shards; two tensors of the model and a moment are cut over them, the others are whole.
std::string SaveSharded(const std::string& directory, int64_t step) {
  const std::vector<TensorSpec> model = {{"embed.weight", at::kFloat, {40, 16}},
                                         {"blocks.0.norm.weight", at::kFloat, {16}},
                                         {"head.weight", at::kDouble, {40, 16}},
                                         {"head.empty", at::kFloat, {0, 4}}};
  const TensorSpec moment{"adamw.m/embed.weight", at::kFloat, {40, 16}};
  const PendingCheckpoint pending = BeginCheckpoint(directory, step);
  std::vector<ShardRecord> records;
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<Piece> pieces;
    const auto add = [&](Piece::Of of, const TensorSpec& spec) {
      const std::vector<int64_t> bounds = comm::ShardBounds(spec.numel(), kRanks, 128);
      const bool empty = bounds[rank] == bounds[rank + 1];
      if (!empty || (spec.numel() == 0 && rank == 0)) pieces.push_back({of, spec, bounds[rank], bounds[rank + 1]});
    };
    for (const TensorSpec& spec : model) add(Piece::Of::model, spec);
    add(Piece::Of::optimizer, moment);
    ShardWriter writer(FileSystem::Real(), pending.folder, rank, kRanks, pieces);
    for (const Piece& piece : pieces)
      writer.Append(at::arange(piece.begin, piece.end, piece.tensor.dtype) + static_cast<double>(step));
    records.push_back(writer.Finish());
  }
  return PublishCheckpoint(pending, {.step = step}, records, {});
}

void Write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// One of ten kinds of damage to a file. The bytes differ afterwards.
std::string Damaged(const std::string& bytes, const std::string& other, std::mt19937_64& rng) {
  std::string damaged = bytes;
  while (damaged == bytes) {
    const size_t at = rng() % bytes.size(), length = 1 + rng() % std::min<size_t>(bytes.size() - at, 64);
    switch (rng() % 10) {
      case 0:  // a bit
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (rng() % 8)));
        break;
      case 1:  // a byte
        damaged[at] = static_cast<char>(rng());
        break;
      case 2:  // a page that was never written
        damaged.replace(at, length, std::string(length, '\0'));
        break;
      case 3:
        damaged.resize(at);
        break;
      case 4:
        damaged += std::string(length, 'x');
        break;
      case 5:
        damaged.erase(at, length);
        break;
      case 6:
        damaged.insert(at, std::string(length, '\0'));
        break;
      case 7: {  // two places exchanged
        const size_t to = rng() % (bytes.size() - length + 1);
        for (size_t i = 0; i < length; ++i) std::swap(damaged[at + i], damaged[to + i]);
        break;
      }
      case 8:  // another rank's file
        damaged = other;
        break;
      default:  // among the first bytes: length and header
        damaged[at % 64] = static_cast<char>(rng());
    }
  }
  return damaged;
}

// Pieces of a shard file that have bytes, in their order: where in the file it ends, and its name.
std::vector<std::pair<size_t, std::string>> EndsOf(const std::string& bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  std::vector<std::pair<size_t, std::string>> ends;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const size_t begin = entry.at("data_offsets")[0], end = entry.at("data_offsets")[1];
    if (begin < end) ends.emplace_back(8 + length + end, name);
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

// The pieces that differ, when the length is the same and all that differs is data; else none.
std::set<std::string> DamagedPieces(const std::string& bytes, const std::string& damaged) {
  std::set<std::string> pieces;
  if (damaged.size() != bytes.size()) return pieces;
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (damaged.compare(0, 8 + length, bytes, 0, 8 + length) != 0) return pieces;
  const auto ends = EndsOf(bytes);
  for (size_t i = 8 + length; i < bytes.size(); ++i)
    if (bytes[i] != damaged[i])
      pieces.insert(std::find_if(ends.begin(), ends.end(), [&](const auto& end) { return i < end.first; })->second);
  return pieces;
}

TEST(Mutation, AThousandDamagedCheckpointsAreRefused) {
  const TemporaryDirectory directory;
  const std::string before = SaveSharded(directory.path(), 1);
  const std::string path = SaveSharded(directory.path(), 2);
  std::vector<std::string> tensors;
  {
    const Checkpoint whole(path);
    whole.Verify();
    for (const auto* of : {&whole.model(), &whole.optimizer()})
      for (const auto& [name, unused] : *of) tensors.push_back(name);
  }
  std::map<std::string, std::string> contents;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string file = path + "/" + ShardName(rank, kRanks);
    contents[file] = ReadFile(file);
  }
  const std::string manifest = path + "/" + kManifestFile;
  contents[manifest] = ReadFile(manifest);
  std::vector<std::string> files;
  for (const auto& [file, unused] : contents) files.push_back(file);

  std::mt19937_64 rng(20);
  int loaded = 0, named = 0, in_shards = 0, in_data = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string& file = files[rng() % files.size()];
    const bool removed = rng() % 50 == 0;
    std::set<std::string> pieces;  // when exactly these are damaged
    if (removed) {
      std::filesystem::remove(file);
    } else {
      const std::string damaged = Damaged(contents[file], contents[files[rng() % files.size()]], rng);
      if (file != manifest) pieces = DamagedPieces(contents[file], damaged);
      Write(file, damaged);
    }
    try {
      Checkpoint(path).Verify();
      ++loaded;
      ADD_FAILURE() << "mutation " << i << " of " << file << " was loaded";
    } catch (const UserError& error) {
      const std::string message = error.what();
      const auto names = [&](const std::string& tensor) { return message.find("'" + tensor) != std::string::npos; };
      if (file != manifest) {
        ++in_shards;
        const bool found = std::any_of(tensors.begin(), tensors.end(), names);
        named += found;
        EXPECT_TRUE(found) << message;
        if (!pieces.empty()) {
          ++in_data;
          EXPECT_TRUE(std::any_of(
              pieces.begin(), pieces.end(),
              [&](const std::string& piece) { return message.find("'" + piece + "'") != std::string::npos; }))
              << "mutation " << i << " damaged " << *pieces.begin() << ": " << message;
        }
        EXPECT_NE(message.find(file), std::string::npos) << message;
      } else {
        EXPECT_TRUE(removed || message.find(kManifestFile) != std::string::npos) << message;
      }
    }
    if (i % 10 == 0) {
      EXPECT_EQ(FindNewestCheckpoint(directory.path()).path, before) << i;
    }
    Write(file, contents[file]);
  }
  EXPECT_EQ(loaded, 0);
  EXPECT_EQ(named, in_shards);
  EXPECT_GT(in_shards, 600);
  EXPECT_GT(in_data, 100);
  Checkpoint(path).Verify();
  EXPECT_EQ(FindNewestCheckpoint(directory.path()).path, path);
  RecordProperty("refused", 1000 - loaded);
}

// Of format 1 (one file for the model, one for the optimizer), which earlier versions wrote.
TEST(Version1, IsRead) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "step-00000003");
  const std::string path = directory / "step-00000003";
  const NamedTensors model = {{"a", at::arange(6, at::kFloat).view({2, 3})}, {"b", at::arange(3, at::kDouble)}};
  const NamedTensors moments = {{"adamw.m/a", at::arange(6, at::kFloat).view({2, 3})}};
  const auto model_hashes = WriteSafetensors(path + "/model.safetensors", FromMemory(model));
  const auto optimizer_hashes = WriteSafetensors(path + "/optimizer.safetensors", FromMemory(moments));
  nlohmann::ordered_json state = {{"sequence", 7},
                                  {"step", 3},
                                  {"applied_updates", 2},
                                  {"samples_seen", 24},
                                  {"seed", 1},
                                  {"loss_scale", 1.0},
                                  {"model_fingerprint", "m"},
                                  {"environment", "e"},
                                  {"config", ""},
                                  {"extra", nlohmann::ordered_json::object()},
                                  {"model", model_hashes},
                                  {"optimizer", optimizer_hashes}};
  const std::string hash = Hash(state.dump()).Hex();
  Write(
      path + "/state.json",
      nlohmann::ordered_json{{"format", "penstock checkpoint"}, {"version", 1}, {"hash", hash}, {"state", state}}.dump(
          1));
  const Checkpoint from(path);
  from.Verify();
  EXPECT_EQ(from.state().samples_seen, 24);
  EXPECT_EQ(from.manifest().sequence, 7);
  for (const auto& [name, tensor] : model)
    EXPECT_TRUE(from.ReadModel({name, tensor.scalar_type(), tensor.sizes().vec()}).equal(tensor));
  EXPECT_TRUE(from.ReadOptimizer({"adamw.m/a", at::kFloat, {2, 3}}).equal(moments.at("adamw.m/a")));
  EXPECT_EQ(FindNewestCheckpoint(directory.path()).path, path);
  std::string bytes = ReadFile(path + "/model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Write(path + "/model.safetensors", bytes);
  EXPECT_THROW(Checkpoint(path).Verify(), UserError);
}

}  // namespace
}  // namespace penstock::checkpoint
