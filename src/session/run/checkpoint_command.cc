#include "session/run/checkpoint_command.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/hash.h"
#include "base/nearest.h"
#include "base/units.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/directory.h"
#include "checkpoint/next_step.h"
#include "checkpoint/safetensors_header.h"
#include "session/run/run_directory.h"

namespace penstock::session {
namespace {

using checkpoint::Checkpoint;
using checkpoint::StoredTensor;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// One checkpoint, or those of a directory with the newest step last. UserError when there is nothing of the kind.
std::vector<std::string> CheckpointsAt(const std::string& path) {
  FileSystem& files = FileSystem::Real();
  if (!files.Exists(path)) throw UserError("'{}' is not there", path);
  // A checkpoint by its name whose manifest went is one all the same: a damaged one.
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string name = fs::path(folder).filename().string();
  if (files.Exists(folder + "/" + checkpoint::kManifestFile) ||
      checkpoint::KindOf(name) == checkpoint::EntryKind::published)
    return {folder};
  const std::string inside = CheckpointsOf(folder);
  std::vector<std::string> found;
  for (const std::string& entry : checkpoint::EntriesOfKind(inside, checkpoint::EntryKind::published, files))
    found.push_back(inside + "/" + entry);
  if (found.empty())
    throw UserError("'{}' holds no checkpoint: give a folder with {}, a directory of such folders, or a run directory",
                    path, checkpoint::kManifestFile);
  return found;
}

// Unfinished saves beside the checkpoints.
std::vector<std::string> UnfinishedAt(const std::string& path) {
  const std::string inside = CheckpointsOf(path);
  std::vector<std::string> found;
  for (const std::string& entry :
       checkpoint::EntriesOfKind(inside, checkpoint::EntryKind::temporary, FileSystem::Real()))
    found.push_back(inside + "/" + entry);
  return found;
}

struct Totals {
  int64_t tensors = 0, elements = 0, bytes = 0;
};
Totals TotalsOf(const std::map<std::string, StoredTensor>& tensors) {
  Totals totals;
  for (const auto& [name, tensor] : tensors) {
    ++totals.tensors;
    totals.elements += tensor.spec.numel();
    totals.bytes += tensor.spec.bytes();
  }
  return totals;
}

Json TensorsJson(const std::map<std::string, StoredTensor>& tensors) {
  Json json = Json::object();
  for (const auto& [name, tensor] : tensors)
    json[name] = {{"dtype", checkpoint::SafetensorsDtype(tensor.spec.dtype)},
                  {"shape", tensor.spec.shape},
                  {"pieces", tensor.pieces.size()}};
  return json;
}

Json InspectJson(const Checkpoint& c) {
  const checkpoint::TrainState& s = c.state();
  Json json = {{"path", c.path()},
               {"format", c.manifest().version},
               {"step", s.step},
               {"applied_updates", s.applied_updates},
               {"samples_seen", s.samples_seen},
               {"seed", s.seed},
               {"loss_scale", s.loss_scale},
               {"model_fingerprint", s.model_fingerprint},
               {"environment", s.environment},
               {"extra", s.extra},
               {"config", s.config}};
  if (const auto next = checkpoint::ReadNextStep(c.path())) {
    json["next_step"] = {{"loss", next->loss}};
    if (next->norm) json["next_step"]["norm"] = *next->norm;
  }
  for (const checkpoint::StoredFile& file : c.manifest().files) json["files"].push_back(file.name);
  json["model"] = TensorsJson(c.model());
  json["optimizer"] = TensorsJson(c.optimizer());
  return json;
}

void PrintTensors(const std::map<std::string, StoredTensor>& tensors, const char* title, std::ostream& out) {
  const Totals totals = TotalsOf(tensors);
  out << fmt::format("{}: {} tensors, {} elements, {}\n", title, totals.tensors, FormatCount(totals.elements),
                     FormatBytes(totals.bytes));
  size_t width = 0;
  for (const auto& [name, tensor] : tensors) width = std::max(width, name.size());
  for (const auto& [name, tensor] : tensors)
    out << fmt::format("  {:<{}}  {:<4} [{}]{}\n", name, width, checkpoint::SafetensorsDtype(tensor.spec.dtype),
                       fmt::join(tensor.spec.shape, ", "),
                       tensor.pieces.size() == 1 ? "" : fmt::format("  in {} shards", tensor.pieces.size()));
}

void PrintInspected(const Checkpoint& c, std::ostream& out) {
  const checkpoint::TrainState& s = c.state();
  out << fmt::format("{}\n", c.path());
  out << fmt::format("  step {}, {} updates applied, {} samples seen, seed {}, loss scale {}\n", s.step,
                     s.applied_updates, s.samples_seen, s.seed, s.loss_scale);
  out << fmt::format("  written with {}\n", s.environment.empty() ? "(not recorded)" : s.environment);
  if (const auto next = checkpoint::ReadNextStep(c.path()))
    out << fmt::format("  the step after it has loss {:.6g}{}\n", next->loss,
                       next->norm ? fmt::format(", gradient norm {:.6g}", *next->norm) : "");
  out << fmt::format("  {} shard file{}, format {}\n", c.manifest().files.size(),
                     c.manifest().files.size() == 1 ? "" : "s", c.manifest().version);
  PrintTensors(c.model(), "model", out);
  PrintTensors(c.optimizer(), "optimizer", out);
}

// Smallest, largest, mean and the first values of one tensor.
int InspectTensor(const Checkpoint& c, const CheckpointCommandOptions& options, std::ostream& out) {
  const bool in_model = c.model().count(options.tensor) != 0;
  const auto& tensors = in_model ? c.model() : c.optimizer();
  const auto at = tensors.find(options.tensor);
  if (at == tensors.end()) {
    std::vector<std::string> names;
    for (const auto* of : {&c.model(), &c.optimizer()})
      for (const auto& [name, unused] : *of) names.push_back(name);
    throw UserError("{}: there is no tensor '{}'{}", c.path(), options.tensor, DidYouMean(options.tensor, names));
  }
  const checkpoint::TensorSpec& spec = at->second.spec;
  const at::Tensor values = (in_model ? c.ReadModel(spec) : c.ReadOptimizer(spec)).to(at::kDouble).view({-1});
  const double* const v = values.const_data_ptr<double>();
  double least = 0, most = 0, sum = 0;
  for (int64_t i = 0; i < values.numel(); ++i) {
    least = i == 0 ? v[i] : std::min(least, v[i]);
    most = i == 0 ? v[i] : std::max(most, v[i]);
    sum += v[i];
  }
  const double mean = values.numel() == 0 ? 0 : sum / static_cast<double>(values.numel());
  std::vector<double> first(v, v + std::min<int64_t>(values.numel(), 8));
  if (options.json) {
    out << Json{{"path", c.path()},    {"tensor", spec.name}, {"dtype", checkpoint::SafetensorsDtype(spec.dtype)},
                {"shape", spec.shape}, {"min", least},        {"max", most},
                {"mean", mean},        {"first", first},      {"hash", c.WholeHash(at->second)}}
               .dump(2)
        << "\n";
    return 0;
  }
  out << fmt::format("{}: {} [{}], least {:.6g}, mean {:.6g}, most {:.6g}\n  {:.6g}{}\n", spec.name,
                     checkpoint::SafetensorsDtype(spec.dtype), fmt::join(spec.shape, ", "), least, mean, most,
                     fmt::join(first, " "), values.numel() > 8 ? " ..." : "");
  return 0;
}

}  // namespace

int RunInspectCheckpoint(const CheckpointCommandOptions& options, std::ostream& out) {
  const std::vector<std::string> paths = CheckpointsAt(options.path);
  if (!options.tensor.empty())
    return InspectTensor(Checkpoint(checkpoint::ResolveCheckpoint(paths.back())), options, out);
  if (paths.size() == 1) {
    const Checkpoint c(paths[0]);
    if (options.json)
      out << InspectJson(c).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    else
      PrintInspected(c, out);
    return 0;
  }
  Json json = Json::array();
  for (const std::string& path : paths) {
    try {
      const Checkpoint c(path);
      const Totals totals = TotalsOf(c.model());
      json.push_back({{"path", path}, {"step", c.state().step}, {"parameters", totals.elements}});
      if (!options.json)
        out << fmt::format("{}: step {}, {} parameters in {} shard file{}\n", path, c.state().step,
                           FormatCount(totals.elements), c.manifest().files.size(),
                           c.manifest().files.size() == 1 ? "" : "s");
    } catch (const Error& error) {
      json.push_back({{"path", path}, {"error", error.what()}});
      if (!options.json) out << fmt::format("{}: cannot be read: {}\n", path, error.what());
    }
  }
  for (const std::string& path : UnfinishedAt(options.path))
    if (!options.json) out << fmt::format("{}: a save that did not finish; the next one removes it\n", path);
  if (options.json) out << Json{{"checkpoints", json}}.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return 0;
}

int RunVerifyCheckpoint(const CheckpointCommandOptions& options, std::ostream& out) {
  Json json = Json::array();
  bool whole = true;
  for (const std::string& path : CheckpointsAt(options.path)) {
    try {
      const Checkpoint c(path);
      // Hash of what the checkpoint holds, however it is cut into shards: equal states have equal ones.
      Hasher contents;
      int64_t bytes = 0;
      Json tensors = Json::object();
      for (const auto* of : {&c.model(), &c.optimizer()})
        for (const auto& [name, tensor] : *of) {
          const std::string hash = c.WholeHash(tensor);
          contents.Update(hash);
          bytes += tensor.spec.bytes();
          if (options.json) tensors[name] = hash;
        }
      checkpoint::ReadNextStep(path);
      const std::string hash = contents.Digest().Hex();
      json.push_back(
          {{"path", path}, {"ok", true}, {"step", c.state().step}, {"contents", hash}, {"tensors", tensors}});
      if (!options.json)
        out << fmt::format("{}: whole, {} tensors, {}, contents {}\n", path, c.model().size() + c.optimizer().size(),
                           FormatBytes(bytes), hash);
    } catch (const Error& error) {
      whole = false;
      json.push_back({{"path", path}, {"ok", false}, {"error", error.what()}});
      if (!options.json) out << fmt::format("{}: NOT whole: {}\n", path, error.what());
    }
  }
  if (options.json)
    out << Json{{"ok", whole}, {"checkpoints", json}}.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return whole ? 0 : 1;
}

}  // namespace penstock::session
