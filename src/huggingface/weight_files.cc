#include "huggingface/weight_files.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "huggingface/json_fields.h"

namespace penstock::huggingface {
namespace {

constexpr size_t kListed = 12;
constexpr int64_t kMaxIndexBytes = 256 << 20;

// "3 tensors are missing: a, b, c"
void AppendList(std::string& message, const std::vector<std::string>& items, std::string_view what) {
  if (items.empty()) return;
  message += fmt::format("\n  {} {}:", items.size(), what);
  for (size_t i = 0; i < std::min(items.size(), kListed); ++i) message += "\n    " + items[i];
  if (items.size() > kListed) message += fmt::format("\n    and {} more", items.size() - kListed);
}

bool IsPlainFileName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
}

// File of every tensor, as the index says.
std::map<std::string, std::string> ReadIndex(const std::string& path, FileSystem& files) {
  const nlohmann::json json = ParseJsonObject(ReadText(path, kMaxIndexBytes, "index of weights", files), path);
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) throw UserError("{}: there is no object 'weight_map'", path);
  std::map<std::string, std::string> where;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !IsPlainFileName(file.get<std::string>()))
      throw UserError("{}: tensor '{}': {} is no name of a file in the same folder", path, tensor, Shown(file));
    where[tensor] = file.get<std::string>();
  }
  if (where.empty()) throw UserError("{}: 'weight_map' is empty", path);
  return where;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

WeightFiles::WeightFiles(const std::string& folder, FileSystem& files) : folder_(folder) {
  const std::string single = folder + "/" + kWeightsFile, index = folder + "/" + kWeightsIndex;
  if (files.Exists(single)) {
    readers_.emplace_back(single, files);
    for (const auto& entry : readers_[0].header().entries) tensors_[entry.spec.name] = 0;
    return;
  }
  if (!files.Exists(index)) {
    const bool pickled =
        files.Exists(folder + "/pytorch_model.bin") || files.Exists(folder + "/pytorch_model.bin.index.json");
    throw UserError("'{}' holds neither {} nor {}{}", folder, kWeightsFile, kWeightsIndex,
                    pickled ? "; its weights are Python pickles, which are programs and are not read: save the model "
                              "again as safetensors (save_pretrained does)"
                            : "");
  }
  const std::map<std::string, std::string> where = ReadIndex(index, files);
  std::map<std::string, size_t> numbers;
  std::vector<std::string> missing, unexpected;
  for (const auto& [tensor, file] : where)
    if (numbers.count(file) == 0) {
      if (!files.Exists(folder + "/" + file))
        throw UserError("{}: '{}' is named there and is not in the folder", index, file);
      numbers[file] = readers_.size();
      readers_.emplace_back(folder + "/" + file, files);
    }
  for (const auto& [file, number] : numbers)
    for (const auto& entry : readers_[number].header().entries) {
      const auto said = where.find(entry.spec.name);
      if (said == where.end() || said->second != file)
        unexpected.push_back(fmt::format("{} in {}", entry.spec.name, file));
      else
        tensors_[entry.spec.name] = number;
    }
  for (const auto& [tensor, file] : where)
    if (tensors_.count(tensor) == 0) missing.push_back(fmt::format("{}, said to be in {}", tensor, file));
  if (missing.empty() && unexpected.empty()) return;
  std::string message = fmt::format("'{}': the shards are not what {} says", folder, kWeightsIndex);
  AppendList(message, missing, "missing");
  AppendList(message, unexpected, "unexpected");
  throw UserError(message);
}

const checkpoint::SafetensorsEntry& WeightFiles::Entry(std::string_view name) const {
  const auto at = tensors_.find(name);
  PENSTOCK_CHECK(at != tensors_.end(), "there is no tensor '{}' in '{}'", name, folder_);
  return readers_[at->second].Find(name);
}

at::Tensor WeightFiles::Read(std::string_view name) const {
  const auto at = tensors_.find(name);
  PENSTOCK_CHECK(at != tensors_.end(), "there is no tensor '{}' in '{}'", name, folder_);
  return readers_[at->second].Read(name);
}

std::vector<MappedTensor> LocateParameters(const WeightFiles& weights, const model::ModelSpec& spec) {
  std::vector<MappedTensor> mapped = MapParameters(spec);
  std::vector<std::string> missing, unexpected, wrong;
  std::set<std::string> used;
  for (MappedTensor& tensor : mapped) {
    std::string name = tensor.theirs;
    if (!weights.Has(name)) name = WithoutHeadPrefix(name);
    if (!weights.Has(name)) {
      missing.push_back(tensor.theirs);
      continue;
    }
    const checkpoint::TensorSpec& found = weights.Entry(name).spec;
    if (found.shape != tensor.shape)
      wrong.push_back(fmt::format("{} is {}, the model has {}", name, ShapeText(found.shape), ShapeText(tensor.shape)));
    else if (!at::isFloatingType(found.dtype))
      wrong.push_back(fmt::format("{} is {}, which holds no weights", name, checkpoint::SafetensorsDtype(found.dtype)));
    used.insert(name);
    tensor.theirs = name;
  }
  // A tied head may be written out all the same; whoever reads it compares the two.
  const bool tied = used.count(kHeadName) == 0;
  for (const auto& [name, unused] : weights.tensors())
    if (used.count(name) == 0 && !IsConstantBuffer(name) && !(tied && name == kHeadName)) unexpected.push_back(name);
  if (missing.empty() && unexpected.empty() && wrong.empty()) return mapped;
  std::string message =
      fmt::format("'{}': the weights are not those of the model that config.json describes", weights.folder());
  AppendList(message, missing, "missing");
  AppendList(message, unexpected, "unexpected");
  AppendList(message, wrong, "of another shape or type");
  throw UserError(message);
}

}  // namespace penstock::huggingface
