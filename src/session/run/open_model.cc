#include "session/run/open_model.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "runtime/environment.h"
#include "runtime/train_loop.h"
#include "session/run/find_tokenizer.h"
#include "session/run/prepare.h"
#include "session/run/run_directory.h"

namespace penstock::session {
namespace {

// Below it the threads of one operation wait for each other longer than they work.
constexpr int64_t kParametersWorthThreads = 10'000'000;

}  // namespace

std::unique_ptr<OpenedModel> OpenModel(const OpenModelOptions& options) {
  if (options.threads < 0 || options.threads > 1024)
    throw UserError("--threads is from 1 to 1024, or 0 to choose; not {}", options.threads);
  auto opened = std::make_unique<OpenedModel>();
  opened->from = std::make_unique<checkpoint::Checkpoint>(checkpoint::ResolveCheckpoint(CheckpointsOf(options.from)));
  const checkpoint::Checkpoint& from = *opened->from;
  opened->checkpoint = from.path();
  opened->step = from.state().step;
  Settings& values = opened->settings.values;
  opened->settings.config.LoadText(from.state().config, from.path() + " (its configuration)");
  opened->settings.config.Finish();
  runtime::PrepareProcess(/*reproducible=*/false);
  opened->data = values.data;
  // A run on token files names no tokenizer: it is the one that the run kept, or bytes.
  if (values.data.source == "tokens") {
    values.data.source = "text";  // of the data only the tokenizer counts here; it may be gone
    values.data.tokenizer = FindTokenizer(from.path(), "");
    if (values.data.tokenizer.empty()) values.data.tokenizer = "bytes";
  }
  const auto known = from.state().extra.find(kTokenizerFingerprint);
  const bool unknown = known != from.state().extra.end() && known->second == kUnknownTokenizer;
  if (options.text || !unknown || !options.tokenizer.empty())
    opened->tokenizer = OpenTokenizer(from.state(), from.path(), values.data.tokenizer, options.tokenizer);
  // The model's vocabulary may be the tokenizer's, which need not lie where the run found it.
  values.data.tokenizer =
      options.tokenizer.empty() ? FindTokenizer(from.path(), values.data.tokenizer) : options.tokenizer;
  opened->spec = ModelOf(opened->settings);
  from.RequireModel(ModelFingerprint(opened->spec));
  if (opened->tokenizer != nullptr && opened->spec.vocabulary < opened->tokenizer->vocabulary())
    throw UserError("the model knows {} tokens and the tokenizer '{}' has {}; give the one it was trained with",
                    opened->spec.vocabulary, opened->tokenizer->name(), opened->tokenizer->vocabulary());
  opened->precision = model::ParsePrecision(values.numerics.precision);
  if (const auto data = from.state().extra.find("data.fingerprint"); data != from.state().extra.end())
    opened->data_fingerprint = data->second;
  runtime::Job job;
  job.spec = opened->spec;
  job.precision = opened->precision;
  job.optimizer = values.optimizer;
  for (const checkpoint::TensorSpec& tensor : runtime::ModelTensors(job))
    if (options.weights) opened->parameters[tensor.name] = from.ReadModel(tensor);
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  at::set_num_threads(static_cast<int>(options.threads > 0                                         ? options.threads
                                       : opened->spec.parameter_count() >= kParametersWorthThreads ? cores
                                                                                                   : 1));
  return opened;
}

}  // namespace penstock::session
