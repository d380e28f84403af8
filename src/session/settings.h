// src/session/settings.h
//
// The whole configuration of a run: every section with its defaults, declared once (base/config.h). Needs no libtorch:
// `check` and the planning commands read the same file as `train`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/loss_scale.h"
#include "base/optimizer_config.h"
#include "data/config.h"
#include "model/family.h"

namespace penstock::session {

struct RunSettings {
  std::string dir;  // empty: runs/<name of the config file>
  bool overwrite = false;
  int64_t seed = 1;
  void Declare(config::Section& s);
};

struct TrainSettings {
  int64_t steps = 100;
  int64_t batch = 8;
  int64_t micro_batch = 1;
  std::string on_nonfinite = "stop";
  int64_t max_skipped = 10;
  int64_t sample_tokens = 0;
  std::string sample_prompt = "def ";
  double sample_temperature = 0.8;
  void Declare(config::Section& s);
};

struct ParallelSettings {
  int64_t data = 1;
  int64_t pipeline = 1;
  int64_t tensor = 1;
  bool sequence_parallel = false;
  int64_t chunks = 1;
  std::string schedule = "1f1b";
  std::string route;
  std::string stages = "balanced";
  std::string recompute = "none";
  std::string split_backward = "as_ordered";
  void Declare(config::Section& s);
};

struct NumericsSettings {
  std::string precision = "fp32";
  bool reproducible = false;
  LossScaleConfig loss_scale;
  // Ready to use: enabled where the precision needs it.
  LossScaleConfig MakeLossScale() const;
  void Declare(config::Section& s);
};

struct RuntimeSettings {
  bool serial = false;
  int64_t intra_op_threads = 1;
  double deadline = 300;
  int64_t memory_limit = 0;
  void Declare(config::Section& s);
};

struct CheckpointSettings {
  int64_t every = 0;
  bool at_end = true;
  int64_t keep = 3;
  int64_t keep_every = 0;
  int64_t snapshot = int64_t{1} << 30;
  bool self_check = true;
  bool other_rope = false;
  std::string resume = "auto";
  std::string weights;
  void Declare(config::Section& s);
};

struct ReportSettings {
  int64_t timeline_first = 1;
  int64_t timeline_steps = 2;
  void Declare(config::Section& s);
};

struct EvalSettings {
  int64_t every = 0;
  int64_t batches = 16;
  void Declare(config::Section& s, const data::DataConfig* data);
};

struct LogSettings {
  bool csv = true;
  bool tensorboard = false;
  void Declare(config::Section& s);
};

// What a plan is priced on (penstock simulate; the prediction of a training run).
struct ClusterSettings {
  std::string name = "this-machine";
  std::string profile;
  std::string order = "tensor_data_pipeline";
  std::string arithmetic = "auto";
  std::string stack = "plain";
  std::string transport = "channelled";
  bool fold = true;
  bool contention = true;
  void Declare(config::Section& s);
};

struct Settings {
  RunSettings run;
  TrainSettings train;
  model::ModelConfig model;
  data::DataConfig data;
  optim::OptimizerConfig optimizer;
  ParallelSettings parallel;
  NumericsSettings numerics;
  RuntimeSettings runtime;
  CheckpointSettings checkpoint;
  ReportSettings report;
  EvalSettings eval;
  LogSettings log;
  ClusterSettings cluster;
};

// Settings with the Config that is bound to them. Not movable: the Config points into the Settings.
class LoadedSettings {
 public:
  // Defaults and declarations only; for documentation and for callers that set keys themselves.
  LoadedSettings();
  // Reads `path`, applies `assignments` ("train.steps=5"), checks. UserError, see base/config.h.
  LoadedSettings(const std::string& path, const std::vector<std::string>& assignments);
  LoadedSettings(const LoadedSettings&) = delete;
  LoadedSettings& operator=(const LoadedSettings&) = delete;

  Settings values;
  config::Config config;
  std::string path;
};

}  // namespace penstock::session
