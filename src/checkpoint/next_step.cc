#include "checkpoint/next_step.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/directory.h"

namespace penstock::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

bool Agree(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

void WriteNextStep(const std::string& checkpoint, const NextStep& next, FileSystem& files) {
  if (!std::isfinite(next.loss) || (next.norm && !std::isfinite(*next.norm))) return;
  // Doubles are printed so that they read back to the same bits.
  Json body = {{"step", next.step}, {"loss", next.loss}, {"environment", next.environment}};
  if (next.norm) body["norm"] = *next.norm;
  const std::string hash = Hash(body.dump()).Hex();
  WriteFileAtomically(checkpoint + "/" + kNextStepFile, Json{{"hash", hash}, {"next_step", body}}.dump(1) + "\n",
                      /*overwrite=*/true, files);
}

std::optional<NextStep> ReadNextStep(const std::string& checkpoint, FileSystem& files) {
  const std::string file = checkpoint + "/" + kNextStepFile;
  if (!files.Exists(file)) return std::nullopt;
  try {
    const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth < 8; };
    const Json json = Json::parse(ReadFile(file, files), shallow);
    const Json& body = json.at("next_step");
    if (Hash(body.dump()).Hex() != json.at("hash").get<std::string>())
      throw UserError("{}: it does not match its own hash (damaged or edited); remove it to go on without the check",
                      file);
    NextStep next{.step = body.at("step"), .loss = body.at("loss"), .environment = body.at("environment")};
    if (body.contains("norm")) next.norm = body.at("norm").get<double>();
    return next;
  } catch (const nlohmann::json::exception& e) {
    throw UserError("{}: not the record of a step ({}); remove it to go on without the check", file, e.what());
  }
}

std::string HoldAgainst(const NextStep& expected, double loss, const std::optional<double>& norm, double tolerance) {
  const auto complain = [&](const char* what, double now, double then) {
    return fmt::format("{} {:.17g} where the run that saved it had {:.17g}", what, now, then);
  };
  if (!Agree(loss, expected.loss, tolerance)) return complain("loss", loss, expected.loss);
  if (norm && expected.norm && !Agree(*norm, *expected.norm, tolerance))
    return complain("gradient norm", *norm, *expected.norm);
  return "";
}

}  // namespace penstock::checkpoint
