#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "checkpoint/directory.h"
#include "checkpoint/tensor_hash.h"

namespace penstock::checkpoint {
namespace {

void CheckSameNames(const SafetensorsReader& reader, const std::map<std::string, std::string>& hashes) {
  for (const auto& [name, unused] : hashes)
    if (!reader.Has(name)) throw UserError("{}: the tensor '{}' of the manifest is missing", reader.path(), name);
  for (const SafetensorsEntry& entry : reader.header().entries)
    if (hashes.count(entry.spec.name) == 0)
      throw UserError("{}: the tensor '{}' is not in the manifest", reader.path(), entry.spec.name);
}

[[noreturn]] void FailHash(const SafetensorsReader& reader, const std::string& name) {
  throw UserError("{}: tensor '{}': its bytes do not match the hash in the manifest (damaged?)", reader.path(), name);
}

at::Tensor ReadVerified(const SafetensorsReader& reader, const std::map<std::string, std::string>& hashes,
                        const TensorSpec& expected) {
  const TensorSpec& stored = reader.Find(expected.name).spec;
  if (stored.shape != expected.shape)
    throw UserError("{}: tensor '{}' has the shape [{}], this run needs [{}]", reader.path(), expected.name,
                    fmt::join(stored.shape, ", "), fmt::join(expected.shape, ", "));
  if (stored.dtype != expected.dtype)
    throw UserError("{}: tensor '{}' is {}, this run needs {}", reader.path(), expected.name,
                    SafetensorsDtype(stored.dtype), SafetensorsDtype(expected.dtype));
  at::Tensor tensor = reader.Read(expected.name);
  if (HashTensor(expected.name, tensor) != hashes.at(expected.name)) FailHash(reader, expected.name);
  return tensor;
}

void VerifyFile(const SafetensorsReader& reader, const std::map<std::string, std::string>& hashes,
                std::vector<char>& buffer) {
  for (const SafetensorsEntry& entry : reader.header().entries) {
    TensorHasher hasher(entry.spec);
    const uint64_t bytes = entry.end - entry.begin;
    for (uint64_t at = 0; at < bytes; at += buffer.size()) {
      const std::span<char> piece(buffer.data(), std::min<uint64_t>(buffer.size(), bytes - at));
      reader.ReadBytes(entry, at, piece);
      hasher.Add({piece.data(), piece.size()});
    }
    if (hasher.Finish() != hashes.at(entry.spec.name)) FailHash(reader, entry.spec.name);
  }
}

}  // namespace

Checkpoint::Checkpoint(const std::string& path, FileSystem& files)
    : path_(path),
      manifest_(ParseManifest(ReadFile(path + "/" + kManifestFile, files), path + "/" + kManifestFile)),
      model_(path + "/" + kModelFile, files),
      optimizer_(path + "/" + kOptimizerFile, files) {
  CheckSameNames(model_, manifest_.model_hashes);
  CheckSameNames(optimizer_, manifest_.optimizer_hashes);
}

void Checkpoint::RequireModel(const std::string& fingerprint) const {
  if (fingerprint != state().model_fingerprint)
    throw UserError(
        "{}: the checkpoint is of another model: it has '{}', this run '{}'; use the config stored in its {}", path_,
        state().model_fingerprint, fingerprint, kManifestFile);
}

at::Tensor Checkpoint::ReadModel(const TensorSpec& expected) const {
  return ReadVerified(model_, manifest_.model_hashes, expected);
}

at::Tensor Checkpoint::ReadOptimizer(const TensorSpec& expected) const {
  return ReadVerified(optimizer_, manifest_.optimizer_hashes, expected);
}

void Checkpoint::Verify() const {
  std::vector<char> buffer(kCopyBuffer);
  VerifyFile(model_, manifest_.model_hashes, buffer);
  VerifyFile(optimizer_, manifest_.optimizer_hashes, buffer);
}

FoundCheckpoint FindNewestCheckpoint(const std::string& directory, FileSystem& files) {
  FoundCheckpoint found;
  for (const std::string& name : EntriesOfKind(directory, EntryKind::temporary, files))
    found.skipped.push_back({directory + "/" + name, "incomplete: the save did not finish"});
  std::vector<std::pair<int64_t, std::string>> candidates;
  for (const EntryKind kind : {EntryKind::published, EntryKind::replaced}) {
    for (const std::string& name : EntriesOfKind(directory, kind, files)) {
      const std::string path = directory + "/" + name;
      try {
        candidates.emplace_back(Checkpoint(path, files).manifest().sequence, path);
      } catch (const Error& e) {
        found.skipped.push_back({path, e.what()});
      }
    }
  }
  std::sort(candidates.rbegin(), candidates.rend());
  for (const auto& [sequence, path] : candidates) {
    try {
      Checkpoint(path, files).Verify();
      found.path = path;
      break;
    } catch (const Error& e) {
      found.skipped.push_back({path, e.what()});
    }
  }
  return found;
}

std::string ResolveCheckpoint(const std::string& path, FileSystem& files) {
  if (files.Exists(path + "/" + kManifestFile)) return path;
  const FoundCheckpoint found = FindNewestCheckpoint(path, files);
  if (found.path) return *found.path;
  std::string reasons;
  for (const SkippedCheckpoint& skipped : found.skipped)
    reasons += fmt::format("\n  {}: {}", skipped.path, skipped.reason);
  throw UserError("'{}' holds no valid checkpoint (a checkpoint is a folder with {}){}", path, kManifestFile, reasons);
}

}  // namespace penstock::checkpoint
