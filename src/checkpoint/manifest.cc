#include "checkpoint/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/directory.h"
#include "checkpoint/safetensors_header.h"

namespace penstock::checkpoint {
namespace {

constexpr const char* kFormat = "penstock checkpoint";
constexpr int kMaxDepth = 16;  // of nested values; ours is 7
using Json = nlohmann::ordered_json;

Json ToJson(const std::map<std::string, StoredTensor>& tensors) {
  Json json = Json::object();
  for (const auto& [name, tensor] : tensors) {
    Json pieces = Json::array();
    for (const StoredPiece& piece : tensor.pieces)
      pieces.push_back(Json::array({piece.file, piece.begin, piece.end, piece.hash}));
    json[name] = {{"dtype", SafetensorsDtype(tensor.spec.dtype)}, {"shape", tensor.spec.shape}, {"pieces", pieces}};
  }
  return json;
}

Json ToJson(const Manifest& m) {
  const TrainState& s = m.state;
  Json files = Json::array();
  for (const StoredFile& file : m.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"header_hash", file.header_hash}});
  return {{"sequence", m.sequence},
          {"step", s.step},
          {"applied_updates", s.applied_updates},
          {"samples_seen", s.samples_seen},
          {"seed", s.seed},
          {"loss_scale", s.loss_scale},
          {"model_fingerprint", s.model_fingerprint},
          {"environment", s.environment},
          {"config", s.config},
          {"extra", Json(s.extra)},
          {"files", std::move(files)},
          {"model", ToJson(m.model)},
          {"optimizer", ToJson(m.optimizer)}};
}

// The manifest has a hash of its own, but a program may be wrong as well as a disk: what readers rely on is checked.
std::map<std::string, StoredTensor> TensorsFromJson(const Json& json, size_t files, const std::string& file) {
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, entry] : json.items()) {
    StoredTensor tensor;
    tensor.spec.name = name;
    try {
      tensor.spec.dtype = ParseSafetensorsDtype(entry.at("dtype").get<std::string>());
    } catch (const UserError& error) {
      throw UserError("{}: tensor '{}': {}", file, name, error.what());
    }
    entry.at("shape").get_to(tensor.spec.shape);
    int64_t numel = 1;
    for (const int64_t extent : tensor.spec.shape)
      if (extent < 0 || __builtin_mul_overflow(numel, extent, &numel))
        throw UserError("{}: tensor '{}' has an impossible shape", file, name);
    int64_t at = 0;
    for (const Json& p : entry.at("pieces")) {
      const StoredPiece piece{p.at(0).get<int>(), p.at(1).get<int64_t>(), p.at(2).get<int64_t>(),
                              p.at(3).get<std::string>()};
      if (piece.begin != at || piece.end < at || piece.file < 0 || static_cast<size_t>(piece.file) >= files)
        throw UserError("{}: tensor '{}': its pieces do not follow each other", file, name);
      at = piece.end;
      tensor.pieces.push_back(piece);
    }
    if (tensor.pieces.empty() || at != numel)
      throw UserError("{}: tensor '{}': its pieces hold {} of its {} elements", file, name, at, numel);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::map<std::string, StoredTensor> TensorsFromVersion1(const Json& json, int file) {
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, hash] : json.get<std::map<std::string, std::string>>())
    tensors[name] = {.spec = {.name = name}, .pieces = {{.file = file, .hash = hash}}};
  return tensors;
}

Manifest FromJson(const Json& json, int version, const std::string& file) {
  Manifest m;
  m.version = version;
  json.at("sequence").get_to(m.sequence);
  json.at("step").get_to(m.state.step);
  json.at("applied_updates").get_to(m.state.applied_updates);
  json.at("samples_seen").get_to(m.state.samples_seen);
  json.at("seed").get_to(m.state.seed);
  json.at("loss_scale").get_to(m.state.loss_scale);
  json.at("model_fingerprint").get_to(m.state.model_fingerprint);
  json.at("environment").get_to(m.state.environment);
  json.at("config").get_to(m.state.config);
  json.at("extra").get_to(m.state.extra);
  if (version == 1) {
    m.files = {{.name = kVersion1ModelFile}, {.name = kVersion1OptimizerFile}};
    m.model = TensorsFromVersion1(json.at("model"), 0);
    m.optimizer = TensorsFromVersion1(json.at("optimizer"), 1);
    return m;
  }
  for (const Json& f : json.at("files")) {
    m.files.push_back(
        {f.at("name").get<std::string>(), f.at("bytes").get<int64_t>(), f.at("header_hash").get<std::string>()});
    if (m.files.back().name.find('/') != std::string::npos || m.files.back().name.empty())
      throw UserError("{}: '{}' is no name of a shard file", file, m.files.back().name);
  }
  m.model = TensorsFromJson(json.at("model"), m.files.size(), file);
  m.optimizer = TensorsFromJson(json.at("optimizer"), m.files.size(), file);
  return m;
}

}  // namespace

std::string PieceName(const TensorSpec& tensor, int64_t begin, int64_t end) {
  if (begin == 0 && end == tensor.numel()) return tensor.name;
  return fmt::format("{}[{}:{}]", tensor.name, begin, end);
}

TensorSpec PieceSpec(const TensorSpec& tensor, int64_t begin, int64_t end) {
  if (begin == 0 && end == tensor.numel()) return tensor;
  return {PieceName(tensor, begin, end), tensor.dtype, {end - begin}};
}

std::string FormatManifest(const Manifest& manifest) {
  PENSTOCK_CHECK(manifest.version == kCheckpointVersion, "format {} is only read", manifest.version);
  PENSTOCK_CHECK(std::isfinite(manifest.state.loss_scale), "the loss scale is not finite");
  try {
    Json body = ToJson(manifest);
    const std::string hash = Hash(body.dump()).Hex();
    return Json{{"format", kFormat}, {"version", kCheckpointVersion}, {"hash", hash}, {"state", std::move(body)}}.dump(
               1) +
           "\n";
  } catch (const nlohmann::json::exception& e) {
    throw UserError("the state of the run cannot be saved: {}", e.what());  // a text that is not UTF-8
  }
}

Manifest ParseManifest(std::string_view text, const std::string& file) {
  try {
    // Bounded depth: writing a value back, which its hash needs, is recursive.
    const auto bounded = [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxDepth) throw UserError("{}: not the manifest of a checkpoint: nested too deeply", file);
      return true;
    };
    const Json json = Json::parse(text, bounded);
    if (!json.is_object() || json.value("format", "") != kFormat)
      throw UserError("{}: not the manifest of a checkpoint", file);
    if (const int version = json.at("version").get<int>(); version < 1 || version > kCheckpointVersion)
      throw UserError("{}: checkpoint format {}; this program reads formats 1 to {}", file, version,
                      kCheckpointVersion);
    const Json& body = json.at("state");
    if (Hash(body.dump()).Hex() != json.at("hash").get<std::string>())
      throw UserError("{}: the manifest does not match its own hash (damaged or edited)", file);
    // The hash is of the values; what is around them is held too.
    if (json.at("version") != 1 && json.dump(1) + "\n" != text)
      throw UserError("{}: the manifest is not printed as it was written (damaged or edited)", file);
    return FromJson(body, json.at("version").get<int>(), file);
  } catch (const nlohmann::json::exception& e) {
    throw UserError("{}: not a valid manifest (truncated?): {}", file, e.what());
  }
}

}  // namespace penstock::checkpoint
