// tests/huggingface/small_models.h
//
// Configurations with a few hundred to a few thousand parameters, random weights for them, and a folder of theirs.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "huggingface/model_folder.h"
#include "model/gpt.h"

namespace penstock::huggingface {

inline model::GptConfig SmallGpt2(bool tied) {
  model::GptConfig c;
  c.family = "gpt2";
  c.layers = 2;
  c.hidden = 8;
  c.heads = 2;
  c.ffn = 12;
  c.vocabulary = 11;
  c.context = 6;
  c.tied = tied;
  return model::ResolveGptConfig(c);
}

inline model::GptConfig SmallLlama(bool tied, const std::string& scaling = "none") {
  model::GptConfig c = SmallGpt2(tied);
  c.family = "llama";
  c.heads = 4;
  c.kv_heads = 2;
  c.norm_eps = 1e-6;
  c.rope_scaling = scaling;
  if (scaling != "none") c.rope_factor = 4;
  return model::ResolveGptConfig(c);
}

// One tensor for each parameter, of values that bf16 and fp16 keep most of and fp32 does not all of when `dtype` is
// wider.
inline std::vector<at::Tensor> RandomWeights(const model::ModelSpec& spec, at::ScalarType dtype, uint64_t seed = 1) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  std::vector<at::Tensor> weights;
  for (const model::ParameterSpec& p : spec.parameters)
    weights.push_back(at::randn(p.shape, generator, at::TensorOptions().dtype(at::kDouble)).to(dtype));
  return weights;
}

// Into `folder`, which is made. Returns the names of the files.
inline std::vector<std::string> WriteSmall(const std::string& folder, const model::GptConfig& config,
                                           const ExportOptions& options = {}) {
  FileSystem::Real().CreateFolders(folder);
  const model::ModelSpec spec = model::BuildGptSpec(config);
  const std::vector<at::Tensor> weights = RandomWeights(spec, options.dtype);
  return WriteModelFolder(
      folder, spec, [&](int p) { return weights[p]; }, options);
}

}  // namespace penstock::huggingface
