#include "checkpoint/manifest.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"

namespace penstock::checkpoint {
namespace {

constexpr const char* kFormat = "penstock checkpoint";
constexpr int kMaxDepth = 16;  // of nested values; ours is 4
using Json = nlohmann::ordered_json;

Json ToJson(const Manifest& m) {
  const TrainState& s = m.state;
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
          {"model", Json(m.model_hashes)},
          {"optimizer", Json(m.optimizer_hashes)}};
}

Manifest FromJson(const Json& json) {
  Manifest m;
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
  json.at("model").get_to(m.model_hashes);
  json.at("optimizer").get_to(m.optimizer_hashes);
  return m;
}

}  // namespace

std::string FormatManifest(const Manifest& manifest) {
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
    if (const int version = json.at("version").get<int>(); version != kCheckpointVersion)
      throw UserError("{}: checkpoint format {}; this program reads format {}", file, version, kCheckpointVersion);
    const Json& body = json.at("state");
    if (Hash(body.dump()).Hex() != json.at("hash").get<std::string>())
      throw UserError("{}: the manifest does not match its own hash (damaged or edited)", file);
    return FromJson(body);
  } catch (const nlohmann::json::exception& e) {
    throw UserError("{}: not a valid manifest (truncated?): {}", file, e.what());
  }
}

}  // namespace penstock::checkpoint
