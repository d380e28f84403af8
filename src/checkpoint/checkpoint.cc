#include "checkpoint/checkpoint.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/nearest.h"
#include "checkpoint/tensor_hash.h"

namespace penstock::checkpoint {
namespace {

std::vector<std::string> NamesOf(const std::map<std::string, StoredTensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : tensors) names.push_back(name);
  return names;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& path, FileSystem& files)
    : path_(path), manifest_(ParseManifest(ReadFile(path + "/" + kManifestFile, files), path + "/" + kManifestFile)) {
  for (size_t file = 0; file < manifest_.files.size(); ++file) OpenFile(file, files);
  if (manifest_.version > 1) return;
  for (auto* tensors : {&manifest_.model, &manifest_.optimizer})
    for (auto& [name, tensor] : *tensors) {
      StoredPiece& piece = tensor.pieces[0];
      tensor.spec = readers_[piece.file].Find(name).spec;
      piece.end = tensor.spec.numel();
    }
}

std::string Checkpoint::Holds(size_t file) const {
  std::vector<std::string> names;
  for (const auto* tensors : {&manifest_.model, &manifest_.optimizer})
    for (const auto& [name, tensor] : *tensors)
      for (const StoredPiece& piece : tensor.pieces)
        if (static_cast<size_t>(piece.file) == file) names.push_back(fmt::format("'{}'", name));
  constexpr size_t kShown = 3;
  if (names.empty()) return "; it holds no tensor";
  const size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format("; it holds {}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

// Whatever is wrong with a file is said with the tensors that are lost with it.
void Checkpoint::OpenFile(size_t file, FileSystem& files) {
  const StoredFile& stored = manifest_.files[file];
  const std::string path = path_ + "/" + stored.name;
  if (!files.Exists(path)) throw UserError("{}: the file is missing{}", path, Holds(file));
  try {
    const std::unique_ptr<ReadableFile> opened = files.Open(path);
    const int64_t bytes = opened->size();
    // The size is compared first: a header may still be whole where the data is cut.
    if (!stored.header_hash.empty() && bytes != stored.bytes)
      throw UserError("{}: it has {} bytes and was written with {} (truncated?)", path, bytes, stored.bytes);
    readers_.emplace_back(path, files);
    const SafetensorsReader& reader = readers_.back();
    if (!stored.header_hash.empty()) {
      std::string header(reader.header().data_start, '\0');
      opened->ReadAt(0, header);
      if (Hash(header).Hex() != stored.header_hash)
        throw UserError("{}: its header is not the one that was written (damaged or edited?)", path);
    }
    size_t pieces = 0;
    for (const auto* tensors : {&manifest_.model, &manifest_.optimizer})
      for (const auto& [name, tensor] : *tensors)
        for (const StoredPiece& piece : tensor.pieces) {
          if (static_cast<size_t>(piece.file) != file) continue;
          ++pieces;
          const TensorSpec spec =
              manifest_.version == 1 ? TensorSpec{.name = name} : PieceSpec(tensor.spec, piece.begin, piece.end);
          if (!reader.Has(spec.name))
            throw UserError("{}: the tensor '{}' of the manifest is missing", path, spec.name);
          if (manifest_.version > 1 && reader.Find(spec.name).spec != spec)
            throw UserError("{}: tensor '{}' has another type or shape than the manifest says", path, spec.name);
        }
    if (pieces != reader.header().entries.size())
      for (const SafetensorsEntry& entry : reader.header().entries)
        if (!Describes(entry.spec.name, static_cast<int>(file)))
          throw UserError("{}: the tensor '{}' is not in the manifest", path, entry.spec.name);
  } catch (const UserError& error) {
    throw UserError("{}{}", error.what(), Holds(file));
  }
}

// Is a tensor of this name in the shard file a piece of the manifest?
bool Checkpoint::Describes(const std::string& entry, int file) const {
  for (const auto* tensors : {&manifest_.model, &manifest_.optimizer})
    for (const auto& [name, tensor] : *tensors)
      for (const StoredPiece& piece : tensor.pieces)
        if (piece.file == file &&
            entry == (manifest_.version == 1 ? name : PieceName(tensor.spec, piece.begin, piece.end)))
          return true;
  return false;
}

void Checkpoint::RequireModel(const std::string& fingerprint) const {
  if (fingerprint != state().model_fingerprint)
    throw UserError(
        "{}: the checkpoint is of another model: it has '{}', this run '{}'; use the config stored in its {}", path_,
        state().model_fingerprint, fingerprint, kManifestFile);
}

const StoredTensor& Checkpoint::Find(Piece::Of of, const TensorSpec& expected) const {
  const auto& tensors = of == Piece::Of::model ? manifest_.model : manifest_.optimizer;
  const auto at = tensors.find(expected.name);
  if (at == tensors.end())
    throw UserError("{}: there is no tensor '{}'{}", path_, expected.name, DidYouMean(expected.name, NamesOf(tensors)));
  const TensorSpec& stored = at->second.spec;
  if (stored.shape != expected.shape)
    throw UserError("{}: tensor '{}' has the shape [{}], this run needs [{}]", path_, expected.name,
                    fmt::join(stored.shape, ", "), fmt::join(expected.shape, ", "));
  if (stored.dtype != expected.dtype)
    throw UserError("{}: tensor '{}' is {}, this run needs {}", path_, expected.name, SafetensorsDtype(stored.dtype),
                    SafetensorsDtype(expected.dtype));
  return at->second;
}

at::Tensor Checkpoint::Read(const StoredTensor& tensor) const {
  at::Tensor out = at::empty(tensor.spec.shape, at::TensorOptions().dtype(tensor.spec.dtype));
  const auto size = static_cast<int64_t>(c10::elementSize(tensor.spec.dtype));
  char* const data = static_cast<char*>(out.mutable_data_ptr());
  for (const StoredPiece& piece : tensor.pieces) {
    const SafetensorsReader& reader = readers_[piece.file];
    const SafetensorsEntry& entry = reader.Find(PieceName(tensor.spec, piece.begin, piece.end));
    const std::span<char> bytes(data + piece.begin * size, static_cast<size_t>((piece.end - piece.begin) * size));
    reader.ReadBytes(entry, 0, bytes);
    TensorHasher hasher(entry.spec);
    hasher.Add({bytes.data(), bytes.size()});
    if (hasher.Finish() != piece.hash) FailHash(piece, entry.spec.name);
  }
  return out;
}

at::Tensor Checkpoint::ReadElements(const StoredTensor& tensor, int64_t first, int64_t count) const {
  PENSTOCK_CHECK(first >= 0 && count >= 0 && first <= tensor.spec.numel() - count, "elements [{}, {}) of {} in '{}'",
                 first, first + count, tensor.spec.numel(), tensor.spec.name);
  at::Tensor out = at::empty({count}, at::TensorOptions().dtype(tensor.spec.dtype));
  const auto size = static_cast<int64_t>(c10::elementSize(tensor.spec.dtype));
  char* const data = static_cast<char*>(out.mutable_data_ptr());
  for (const StoredPiece& piece : tensor.pieces) {
    const int64_t begin = std::max(piece.begin, first), end = std::min(piece.end, first + count);
    if (begin >= end) continue;
    const SafetensorsReader& reader = readers_[piece.file];
    reader.ReadBytes(reader.Find(PieceName(tensor.spec, piece.begin, piece.end)),
                     static_cast<uint64_t>((begin - piece.begin) * size),
                     {data + (begin - first) * size, static_cast<size_t>((end - begin) * size)});
  }
  return out;
}

at::Tensor Checkpoint::ReadModel(const std::string& name, const std::vector<int64_t>& shape) const {
  const auto found = model().find(name);
  return ReadModel(TensorSpec{name, found == model().end() ? at::kFloat : found->second.spec.dtype, shape});
}

at::Tensor Checkpoint::ReadModelElements(const TensorSpec& expected, int64_t first, int64_t count) const {
  return ReadElements(Find(Piece::Of::model, expected), first, count);
}

at::Tensor Checkpoint::ReadOptimizerElements(const TensorSpec& expected, int64_t first, int64_t count) const {
  return ReadElements(Find(Piece::Of::optimizer, expected), first, count);
}

void Checkpoint::Stream(const StoredTensor& tensor, std::vector<char>& buffer,
                        const std::function<void(std::string_view)>& take) const {
  for (const StoredPiece& piece : tensor.pieces) {
    const SafetensorsReader& reader = readers_[piece.file];
    const SafetensorsEntry& entry = reader.Find(PieceName(tensor.spec, piece.begin, piece.end));
    TensorHasher hasher(entry.spec);
    const uint64_t bytes = entry.end - entry.begin;
    for (uint64_t at = 0; at < bytes; at += buffer.size()) {
      const std::span<char> part(buffer.data(), std::min<uint64_t>(buffer.size(), bytes - at));
      reader.ReadBytes(entry, at, part);
      hasher.Add({part.data(), part.size()});
      if (take) take({part.data(), part.size()});
    }
    if (hasher.Finish() != piece.hash) FailHash(piece, entry.spec.name);
  }
}

void Checkpoint::FailHash(const StoredPiece& piece, const std::string& name) const {
  throw UserError("{}: tensor '{}': its bytes do not match the hash in the manifest (damaged?)", FilePath(piece.file),
                  name);
}

void Checkpoint::Verify() const {
  std::vector<char> buffer(kCopyBuffer);
  for (const auto* tensors : {&manifest_.model, &manifest_.optimizer})
    for (const auto& [name, tensor] : *tensors) Stream(tensor, buffer, nullptr);
}

std::string Checkpoint::WholeHash(const StoredTensor& tensor) const {
  std::vector<char> buffer(kCopyBuffer);
  TensorHasher whole(tensor.spec);
  Stream(tensor, buffer, [&whole](std::string_view bytes) { whole.Add(bytes); });
  return whole.Finish();
}

namespace {

// Runs `read`, which takes a checkpoint for damaged by a UserError. What the world does (no permission, no more
// descriptors, a disk that does not answer) says nothing about the checkpoint: to take an older one for it would train
// over work that is there.
template <typename F>
bool IsWhole(const std::string& path, std::string* why, const F& read) {
  try {
    read();
    return true;
  } catch (const UserError& error) {
    *why = error.what();
    return false;
  } catch (const WorldError& error) {
    throw WorldError(
        fmt::format("{}; no other checkpoint is taken for '{}', which may be whole: try again, or move it away to have "
                    "the one before it",
                    error.what(), path));
  }
}

}  // namespace

FoundCheckpoint FindNewestCheckpoint(const std::string& directory, FileSystem& files) {
  FoundCheckpoint found;
  for (const std::string& name : EntriesOfKind(directory, EntryKind::temporary, files))
    found.skipped.push_back({directory + "/" + name, "incomplete: the save did not finish", EntryKind::temporary, {}});
  struct Candidate {
    int64_t sequence;
    std::string path;
    EntryKind kind;
  };
  std::vector<Candidate> candidates;
  for (const EntryKind kind : {EntryKind::published, EntryKind::replaced}) {
    for (const std::string& name : EntriesOfKind(directory, kind, files)) {
      SkippedCheckpoint entry{directory + "/" + name, "", kind, {}};
      const bool whole = IsWhole(entry.path, &entry.reason, [&] {
        const std::string manifest = entry.path + "/" + kManifestFile;
        entry.sequence = ParseManifest(ReadFile(manifest, files), manifest).sequence;
        const Checkpoint opened(entry.path, files);
      });
      if (whole)
        candidates.push_back({*entry.sequence, entry.path, kind});
      else
        found.skipped.push_back(std::move(entry));
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.sequence, a.path) > std::tie(b.sequence, b.path);
  });
  for (const Candidate& candidate : candidates) {
    std::string why;
    if (IsWhole(candidate.path, &why, [&] { Checkpoint(candidate.path, files).Verify(); })) {
      found.path = candidate.path;
      break;
    }
    found.skipped.push_back({candidate.path, why, candidate.kind, candidate.sequence});
  }
  return found;
}

std::string ResolveCheckpoint(const std::string& path, FileSystem& files) {
  if (files.Exists(path + "/" + kManifestFile)) return path;
  const FoundCheckpoint found = FindNewestCheckpoint(path, files);
  if (found.path) {
    for (const SkippedCheckpoint& skipped : found.skipped)
      if (skipped.kind != EntryKind::temporary)
        log::Warning("passed over '{}': {}; '{}' is taken", skipped.path, skipped.reason, *found.path);
    return *found.path;
  }
  std::string reasons;
  for (const SkippedCheckpoint& skipped : found.skipped)
    reasons += fmt::format("\n  {}: {}", skipped.path, skipped.reason);
  throw UserError("'{}' holds no valid checkpoint (a checkpoint is a folder with {}){}", path, kManifestFile, reasons);
}

}  // namespace penstock::checkpoint
