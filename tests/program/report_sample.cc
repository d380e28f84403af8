// Writes report.html of made-up runs, for html_report.py and for people who work on the page.
// usage: report_sample FOLDER
//   both.html       four ranks, predicted and measured, memory with a limit, metrics, marks
//   predicted.html  a prediction alone
//   large.html      16 ranks, more than 10,000 actions
#include <cmath>
#include <iostream>

#include "base/error.h"
#include "base/file.h"
#include "report/html.h"
#include "report/sample.h"

namespace penstock::report {
namespace {

std::vector<StepMetrics> Metrics(int steps, double seconds) {
  std::vector<StepMetrics> metrics;
  for (int i = 1; i <= steps; ++i) {
    StepMetrics m;
    m.step = i;
    m.loss = 2.1 + 3.6 * std::exp(-i / 40.0) + 0.06 * std::sin(i * 1.7);
    m.tokens = 16384;
    m.seconds = seconds * (1 + 0.04 * std::sin(i * 0.9)) * (i == 1 ? 2.5 : 1);
    m.tokens_per_second = static_cast<double>(m.tokens) / m.seconds;
    metrics.push_back(m);
  }
  return metrics;
}

void Write(const std::string& folder, const std::string& name, const HtmlInput& input) {
  const std::string page = HtmlReport(input);
  WriteFileAtomically(folder + "/" + name, page, true);
  std::cout << name << " " << page.size() << " bytes\n";
}

void Both(const std::string& folder) {
  constexpr int64_t kUnit = int64_t{96} << 20;
  const auto s = PipelineOf("1f1b", 4, 1, 8);
  schedule::Timeline predicted = Scaled(Replayed(s, Rational(1, 10)), 0.012);
  predicted.title = "predicted";
  for (auto& e : predicted.events)
    if (e.action.key.unit.stage == 3) e.provenance = schedule::Provenance::extrapolated;
  AddMemory(predicted, kUnit);
  AddMessages(predicted, s, 0.0012, 1 << 20);
  schedule::Timeline measured = LikeMeasured(s, 0.0122, 0.0016, 1, 1.22, 4, 11);
  AddMemory(measured, kUnit);
  AddMessages(measured, s, 0.0014, 1 << 20);
  HtmlInput input;
  input.title = "1F1B on four ranks";
  input.predicted = &predicted;
  input.measured = &measured;
  input.schedule = &s;
  input.memory_limits.assign(4, int64_t{2} << 30);
  input.metrics = Metrics(200, 0.45);
  input.facts = {{"model", "gpt, 85.1 M parameters, fp32"},
                 {"cluster", "this machine, 4 threads"},
                 {"prices", "stated by the vendor, not measured here"},
                 {"data", "tinystories, sequence 256"},
                 {"seed", "1"}};
  input.uncalibrated = true;
  Write(folder, "both.html", input);
  input.warnings = {"4 ranks with 1 thread each on 2 cores; they take turns, and measured times say so."};
  input.measured = nullptr;
  input.metrics.clear();
  Write(folder, "predicted.html", input);
}

void Large(const std::string& folder) {
  const auto s = PipelineOf("zb-h1", 16, 1, 128);
  schedule::Timeline predicted = Scaled(Replayed(s, Rational(1, 10)), 0.002);
  AddMessages(predicted, s, 0.0002, 1 << 20);
  const schedule::Timeline measured = LikeMeasured(s, 0.00205, 0.0003, 5, 1.1, 2, 3);
  HtmlInput input;
  input.title = "ZB-H1 on sixteen ranks";
  input.predicted = &predicted;
  input.measured = &measured;
  input.schedule = &s;
  Write(folder, "large.html", input);
}

}  // namespace
}  // namespace penstock::report

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: report_sample FOLDER\n";
    return 2;
  }
  try {
    penstock::FileSystem::Real().CreateFolders(argv[1]);
    penstock::report::Both(argv[1]);
    penstock::report::Large(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
