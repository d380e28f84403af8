#include "report/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/appended_file.h"
#include "report/json_text.h"

namespace penstock::report {
namespace {

using Json = nlohmann::json;

// Throws Json::exception when a field is missing or of another type.
StepMetrics FromJson(const Json& line) {
  const auto number = [](const Json& value) {
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  };
  StepMetrics m;
  m.step = line.at("step").get<int64_t>();
  m.loss = number(line.at("loss"));
  if (line.contains("grad_norm")) m.grad_norm = number(line.at("grad_norm"));
  m.learning_rate = number(line.at("lr"));
  m.tokens = line.at("tokens").get<int64_t>();
  m.seconds = number(line.at("seconds"));
  m.tokens_per_second = number(line.at("tokens_per_second"));
  m.applied = line.at("applied").get<bool>();
  if (line.contains("loss_scale")) m.loss_scale = number(line.at("loss_scale"));
  if (line.contains("peak_bytes")) m.peak_bytes = line.at("peak_bytes").get<std::vector<int64_t>>();
  if (line.contains("eval_loss")) {
    m.eval.emplace();
    m.eval->loss = number(line.at("eval_loss"));
    if (line.contains("eval_bits_per_byte")) m.eval->bits_per_byte = number(line.at("eval_bits_per_byte"));
    m.eval->accuracy = number(line.at("eval_accuracy"));
    m.eval->tokens = line.at("eval_tokens").get<int64_t>();
  }
  return m;
}

}  // namespace

std::string PrintMetrics(const StepMetrics& m) {
  std::string line = fmt::format("{{\"step\":{},\"loss\":{}", m.step, JsonNumber(m.loss));
  if (m.grad_norm) line += fmt::format(",\"grad_norm\":{}", JsonNumber(*m.grad_norm));
  line += fmt::format(",\"lr\":{},\"tokens\":{},\"tokens_per_second\":{},\"seconds\":{},\"applied\":{}",
                      JsonNumber(m.learning_rate), m.tokens, JsonNumber(m.tokens_per_second), JsonNumber(m.seconds),
                      m.applied);
  if (m.loss_scale) line += fmt::format(",\"loss_scale\":{}", JsonNumber(*m.loss_scale));
  if (!m.peak_bytes.empty()) {
    line += ",\"peak_bytes\":[";
    for (size_t r = 0; r < m.peak_bytes.size(); ++r) line += fmt::format("{}{}", r == 0 ? "" : ",", m.peak_bytes[r]);
    line += "]";
  }
  if (m.eval) {
    line += fmt::format(",\"eval_loss\":{}", JsonNumber(m.eval->loss));
    if (m.eval->bits_per_byte) line += fmt::format(",\"eval_bits_per_byte\":{}", JsonNumber(*m.eval->bits_per_byte));
    line += fmt::format(",\"eval_accuracy\":{},\"eval_tokens\":{}", JsonNumber(m.eval->accuracy), m.eval->tokens);
  }
  return line + "}";
}

std::vector<StepMetrics> ReadMetrics(const std::string& path, FileSystem& files) {
  std::vector<StepMetrics> steps;
  if (!files.Exists(path)) return steps;
  const std::string text = ReadFile(path, files);
  int line_number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // cut while it was written
    ++line_number;
    try {
      steps.push_back(FromJson(Json::parse(text.begin() + at, text.begin() + end)));
    } catch (const Json::exception& e) {
      throw UserError("{}:{}: this is not the line of a step ({}); remove the line, or move the file away", path,
                      line_number, e.what());
    }
    at = end + 1;
  }
  return steps;
}

MetricsWriter::MetricsWriter(const std::string& path, int64_t first_step, FileSystem& files) {
  std::string kept;
  for (const StepMetrics& m : ReadMetrics(path, files))
    if (m.step < first_step) kept += PrintMetrics(m) + "\n";
  file_ = BeginAnew(path, kept, files);
}

void MetricsWriter::Write(const StepMetrics& metrics) { file_->Append(PrintMetrics(metrics) + "\n"); }

}  // namespace penstock::report
