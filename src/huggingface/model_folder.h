// src/huggingface/model_folder.h
//
// A model folder as `from_pretrained` reads it and `save_pretrained` writes it: config.json and weights. The
// tokenizer's files beside them are the caller's.
//
// Memory: one tensor at a time, in both directions. Errors: UserError as config_json.h and weight_files.h; WorldError
// when the disk fails.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/tensor_source.h"
#include "huggingface/config_json.h"
#include "huggingface/names.h"
#include "huggingface/weight_files.h"
#include "model/spec.h"

namespace penstock::huggingface {

inline constexpr const char* kConfigFile = "config.json";

class ModelFolder {
 public:
  // Reads config.json and the headers of all weights, and checks that they fit. `spec` is then known.
  explicit ModelFolder(const std::string& folder, FileSystem& files = FileSystem::Real());

  const ImportedConfig& config() const { return config_; }
  const model::ModelSpec& spec() const { return spec_; }
  const WeightFiles& weights() const { return weights_; }
  // Parameters in order of the spec, fp32, in our layout. Wider ones are rounded. The folder must outlive it. UserError
  // when a tied head was written out and is another matrix than the embedding (found when that is fetched).
  checkpoint::TensorSource Parameters() const;

 private:
  at::Tensor Fetch(int parameter) const;

  ImportedConfig config_;
  WeightFiles weights_;
  model::ModelSpec spec_;
  std::vector<MappedTensor> located_;  // by parameter
};

struct ExportOptions {
  at::ScalarType dtype = at::kFloat;  // F64 F32 BF16 F16
  // Tensors go into files of at most this; a larger tensor gets a file of its own.
  int64_t max_shard_bytes = int64_t{5} << 30;
  ConfigJsonOptions config{};  // its dtype is overridden
};

// Writes config.json, and the weights as one file or as shards with an index, into `folder`, which is there. `fetch(p)`
// gives parameter p of the spec on the CPU, in any type; called once for each, in order. Returns the names of the files
// written. UserError when a value is beyond the range of the type. Not atomic: the caller publishes the folder.
std::vector<std::string> WriteModelFolder(const std::string& folder, const model::ModelSpec& spec,
                                          const std::function<at::Tensor(int)>& fetch,
                                          const ExportOptions& options = {}, FileSystem& files = FileSystem::Real());

}  // namespace penstock::huggingface
