#include "checkpoint/safetensors.h"

#include <ATen/ops/empty.h>

#include <bit>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "checkpoint/tensor_hash.h"

namespace penstock::checkpoint {

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

SafetensorsReader::SafetensorsReader(const std::string& path, FileSystem& files)
    : path_(path), file_(files.Open(path)) {
  const auto bytes = static_cast<uint64_t>(file_->size());
  std::string prefix(std::min<uint64_t>(bytes, 8), '\0');
  file_->ReadAt(0, prefix);
  std::string json(CheckSafetensorsPrefix(prefix, bytes, path), '\0');
  file_->ReadAt(8, json);
  header_ = ParseSafetensorsHeader(json, bytes, path);
  for (size_t i = 0; i < header_.entries.size(); ++i) index_.emplace(header_.entries[i].spec.name, i);
}

const SafetensorsEntry& SafetensorsReader::Find(std::string_view name) const {
  const auto at = index_.find(name);
  if (at != index_.end()) return header_.entries[at->second];
  std::vector<std::string> names;
  for (const auto& [known, unused] : index_) names.push_back(known);
  throw UserError("{}: there is no tensor '{}'{}", path_, name, DidYouMean(name, names));
}

void SafetensorsReader::ReadBytes(const SafetensorsEntry& entry, uint64_t offset, std::span<char> out) const {
  PENSTOCK_CHECK(offset + out.size() <= entry.end - entry.begin, "bytes [{}, {}) of tensor '{}', which has {}", offset,
                 offset + out.size(), entry.spec.name, entry.end - entry.begin);
  file_->ReadAt(static_cast<int64_t>(header_.data_start + entry.begin + offset), out);
}

at::Tensor SafetensorsReader::Read(std::string_view name) const {
  const SafetensorsEntry& entry = Find(name);
  at::Tensor tensor = at::empty(entry.spec.shape, at::TensorOptions().dtype(entry.spec.dtype));
  ReadBytes(entry, 0, {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
  return tensor;
}

at::Tensor SafetensorsReader::ReadElements(std::string_view name, int64_t first, int64_t count) const {
  const SafetensorsEntry& entry = Find(name);
  PENSTOCK_CHECK(first >= 0 && count >= 0 && first <= entry.spec.numel() - count, "elements [{}, {}) of {} in '{}'",
                 first, first + count, entry.spec.numel(), name);
  at::Tensor tensor = at::empty({count}, at::TensorOptions().dtype(entry.spec.dtype));
  ReadBytes(entry, static_cast<uint64_t>(first) * c10::elementSize(entry.spec.dtype),
            {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
  return tensor;
}

std::map<std::string, std::string> WriteSafetensors(const std::string& path, const TensorSource& source,
                                                    const std::map<std::string, std::string>& metadata,
                                                    FileSystem& files) {
  std::map<std::string, std::string> hashes;
  const std::string header = FormatSafetensorsHeader(source.specs, metadata);
  const std::unique_ptr<WritableFile> file = files.Create(path);
  file->Append(header);
  for (size_t i = 0; i < source.specs.size(); ++i) {
    const TensorSpec& spec = source.specs[i];
    const at::Tensor tensor = source.fetch(static_cast<int>(i)).contiguous();
    PENSTOCK_CHECK(tensor.is_cpu() && tensor.scalar_type() == spec.dtype && tensor.sizes() == spec.shape,
                   "the source of '{}' delivered another dtype or shape than it announced", spec.name);
    const std::string_view bytes(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    TensorHasher hasher(spec);
    hasher.Add(bytes);
    hashes.emplace(spec.name, hasher.Finish());
    file->Append(bytes);
  }
  file->Sync();
  file->Close();
  return hashes;
}

}  // namespace penstock::checkpoint
