// Case B5 (docs/testing.md): an expensive head. Does the planner take layers away from it, and do stages take as long
// as their layers say? Layers are measured one by one (one layer a stage, all stages on one rank), a stage is predicted
// as their sum, and the planned stages are measured the same way. Exit status 1 when a stage is off by more than 15 %.
//   build/stage_balance_bench [PAIRS]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "data/dataset.h"
#include "report/breakdown.h"
#include "session/run/prepare.h"
#include "session/settings.h"

namespace penstock {
namespace {

// Vocabulary 20,000 at hidden 32: the head costs as much as several blocks.
constexpr const char* kConfig = R"(
  [train]
  steps = 6
  batch = 8
  micro_batch = 2
  [model]
  layers = 10
  hidden = 32
  heads = 4
  vocabulary = 20000
  [data]
  sequence = 256
  [optimizer]
  schedule = "constant"
  [parallel]
  schedule = "gpipe"
)";

struct Measured {
  model::Partition partition;
  std::vector<double> seconds;  // [stage] forward + backward of a micro-batch, warm steps only
};

Measured Measure(int stages, const std::string& cut, const std::shared_ptr<const data::Dataset>& samples) {
  session::LoadedSettings settings;
  settings.config.LoadText(kConfig, "B5");
  settings.config.Set(fmt::format("parallel.chunks={}", stages));
  settings.config.Set(fmt::format("parallel.stages='{}'", cut));
  settings.config.Finish();
  const auto run = session::Prepare(settings, samples);
  runtime::TrainLoop loop = session::MakeLoop(settings, *run);
  loop.timeline_first = 1;
  loop.timeline_count = settings.values.train.steps - 1;
  const runtime::TrainOutcome outcome = runtime::RunTrainLoop(loop);
  Measured measured{run->plan.partition, {}};
  for (const report::StageTimes& t : report::Analyse(outcome.timeline).stages)
    measured.seconds.push_back(t.forward + t.backward + t.backward_input + t.backward_weight);
  return measured;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Run(int pairs) {
  constexpr int kStages = 4;
  const auto samples =
      std::make_shared<data::ListDataset>(data::ListDataset::Random(std::vector<int64_t>(48, 256), 20000, 7));
  const int layers = 12;  // embedding, blocks, head
  std::vector<std::vector<double>> predicted(kStages), measured(kStages);
  model::Partition partition;
  for (int pair = 0; pair < pairs; ++pair) {
    const Measured each = Measure(layers, "even", samples);
    const Measured planned = Measure(kStages, "balanced", samples);
    partition = planned.partition;
    for (int s = 0; s < kStages; ++s) {
      double sum = 0;
      for (int l = partition.first[s]; l < partition.first[s + 1]; ++l) sum += each.seconds[l];
      predicted[s].push_back(sum);
      measured[s].push_back(planned.seconds[s]);
    }
  }
  fmt::print("GPT-2, 10 blocks, hidden 32, vocabulary 20,000, 2 x 256 tokens a micro-batch; median of {} pairs\n",
             pairs);
  bool good = true;
  for (int s = 0; s < kStages; ++s) {
    std::vector<double> ratios;
    for (int pair = 0; pair < pairs; ++pair) ratios.push_back(measured[s][pair] / predicted[s][pair]);
    const double ratio = Median(ratios);
    good = good && std::abs(ratio - 1) <= 0.15;
    fmt::print("stage {}: {} layers, from its layers {:.2f} ms, measured {:.2f} ms, ratio {:.3f}\n", s,
               partition.first[s + 1] - partition.first[s], 1e3 * Median(predicted[s]), 1e3 * Median(measured[s]),
               ratio);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 5); }
