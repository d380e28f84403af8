#include "huggingface/model_folder.h"

#include <ATen/ops/equal.h>

#include <any>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "huggingface/json_fields.h"
#include "huggingface/names.h"
#include "model/gpt.h"

namespace penstock::huggingface {
namespace {

constexpr int64_t kMaxConfigBytes = 16 << 20;

ImportedConfig ReadConfig(const std::string& folder, FileSystem& files) {
  const std::string path = folder + "/" + kConfigFile;
  if (!files.Exists(path)) throw UserError("'{}' is no folder with a {}", folder, kConfigFile);
  return ParseConfigJson(ReadText(path, kMaxConfigBytes, "configuration", files), path);
}

// Parameters are listed only for a number of layers that the files can have at all.
model::ModelSpec BuildSpec(const model::GptConfig& config, const WeightFiles& weights) {
  const auto tensors = static_cast<int64_t>(weights.tensors().size());
  if (config.layers > tensors)
    throw UserError("'{}': {} says '{}' = {}, and the weights are {} tensors in all", weights.folder(), kConfigFile,
                    config.family == "gpt2" ? "n_layer" : "num_hidden_layers", config.layers, tensors);
  return model::BuildGptSpec(config);
}

// The largest finite number.
double Largest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return std::numeric_limits<c10::Half>::max();
    case at::kBFloat16:
      return std::numeric_limits<c10::BFloat16>::max();
    case at::kFloat:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

ModelFolder::ModelFolder(const std::string& folder, FileSystem& files)
    : config_(ReadConfig(folder, files)), weights_(folder, files), spec_(BuildSpec(config_.model, weights_)) {
  located_ = LocateParameters(weights_, spec_);
}

at::Tensor ModelFolder::Fetch(int parameter) const {
  const MappedTensor& located = located_[parameter];
  at::Tensor tensor = weights_.Read(located.theirs);
  if (spec_.parameters[parameter].name == "embed.token.weight" && config_.model.tied && weights_.Has(kHeadName)) {
    const at::Tensor head = weights_.Read(kHeadName);
    if (head.scalar_type() != tensor.scalar_type() || !at::equal(head, tensor))
      throw UserError(
          "'{}': {} says that the head shares the embedding, and '{}' is another matrix than '{}'; set "
          "tie_word_embeddings to false there to use both",
          weights_.folder(), kConfigFile, kHeadName, located.theirs);
  }
  if (located.transposed) tensor = tensor.t();
  return tensor.to(at::kFloat).contiguous();
}

checkpoint::TensorSource ModelFolder::Parameters() const {
  checkpoint::TensorSource source;
  for (const model::ParameterSpec& p : spec_.parameters) source.specs.push_back({p.name, at::kFloat, p.shape});
  source.fetch = [this](int i) { return Fetch(i); };
  return source;
}

std::vector<std::string> WriteModelFolder(const std::string& folder, const model::ModelSpec& spec,
                                          const std::function<at::Tensor(int)>& fetch, const ExportOptions& options,
                                          FileSystem& files) {
  if (!at::isFloatingType(options.dtype)) throw UserError("weights cannot be written as {}", toString(options.dtype));
  const std::vector<MappedTensor> mapped = MapParameters(spec);
  std::vector<checkpoint::TensorSpec> tensors;
  std::vector<std::vector<int>> shards(1);  // parameters in each
  int64_t in_shard = 0, total = 0;
  for (size_t p = 0; p < mapped.size(); ++p) {
    tensors.push_back({mapped[p].theirs, options.dtype, mapped[p].shape});
    const int64_t bytes = tensors.back().bytes();
    if (in_shard > 0 && in_shard + bytes > options.max_shard_bytes) {
      shards.emplace_back();
      in_shard = 0;
    }
    shards.back().push_back(static_cast<int>(p));
    in_shard += bytes;
    total += bytes;
  }
  const auto converted = [&](int p) {
    const at::Tensor given = fetch(p);
    at::Tensor tensor = given.to(options.dtype);
    if (given.scalar_type() != options.dtype && !tensor.isfinite().all().item<bool>() &&
        given.isfinite().all().item<bool>())
      throw UserError("'{}' has values beyond {:.6g}, which {} cannot hold; write a type with a wider range",
                      spec.parameters[p].name, Largest(options.dtype), checkpoint::SafetensorsDtype(options.dtype));
    return mapped[p].transposed ? tensor.t().contiguous() : tensor.contiguous();
  };
  std::vector<std::string> written;
  nlohmann::ordered_json index;
  index["metadata"]["total_size"] = total;
  for (size_t s = 0; s < shards.size(); ++s) {
    const std::string name = shards.size() == 1 ? std::string(kWeightsFile)
                                                : fmt::format("model-{:05}-of-{:05}.safetensors", s + 1, shards.size());
    checkpoint::TensorSource source;
    for (const int p : shards[s]) {
      source.specs.push_back(tensors[p]);
      index["weight_map"][tensors[p].name] = name;
    }
    source.fetch = [&](int i) { return converted(shards[s][i]); };
    // The reference reader refuses a file that does not say what its tensors are laid out for.
    checkpoint::WriteSafetensors(folder + "/" + name, source, {{"format", "pt"}}, files);
    written.push_back(name);
  }
  const auto write = [&](const char* name, const std::string& text) {
    WriteFileAtomically(folder + "/" + name, text, /*overwrite=*/false, files);
    written.emplace_back(name);
  };
  if (shards.size() > 1) write(kWeightsIndex, index.dump(2) + "\n");
  ConfigJsonOptions config = options.config;
  config.dtype = options.dtype == at::kDouble     ? "float64"
                 : options.dtype == at::kBFloat16 ? "bfloat16"
                 : options.dtype == at::kHalf     ? "float16"
                                                  : "float32";
  write(kConfigFile, FormatConfigJson(std::any_cast<const model::GptConfig&>(spec.config), config));
  return written;
}

}  // namespace penstock::huggingface
