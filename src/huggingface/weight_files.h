// src/huggingface/weight_files.h
//
// The tensors of a model folder: model.safetensors, or the shards that model.safetensors.index.json names. Opening
// reads headers only; every shard must hold exactly what the index says. Errors: UserError that names folder, file and
// tensor; a shard's name must be a plain file name, so that an index cannot reach outside of the folder. Threads: any
// number after opening.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "huggingface/names.h"
#include "model/spec.h"

namespace penstock::huggingface {

inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kWeightsIndex = "model.safetensors.index.json";

class WeightFiles {
 public:
  explicit WeightFiles(const std::string& folder, FileSystem& files = FileSystem::Real());

  const std::string& folder() const { return folder_; }
  size_t num_files() const { return readers_.size(); }
  // All tensors by name, with the file each is in.
  const std::map<std::string, size_t, std::less<>>& tensors() const { return tensors_; }
  bool Has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  const checkpoint::SafetensorsEntry& Entry(std::string_view name) const;
  at::Tensor Read(std::string_view name) const;

 private:
  std::string folder_;
  std::vector<checkpoint::SafetensorsReader> readers_;
  std::map<std::string, size_t, std::less<>> tensors_;
};

// Where each parameter of `spec` is (huggingface/names.h), by the name that the files have: with or without the prefix
// of the model with a head. One UserError lists all tensors that are missing, unexpected, of the wrong shape or of a
// type that holds no weights.
std::vector<MappedTensor> LocateParameters(const WeightFiles& weights, const model::ModelSpec& spec);

}  // namespace penstock::huggingface
