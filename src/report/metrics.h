// src/report/metrics.h
//
// metrics.jsonl: one JSON object per step, appended as the run goes. What a crash leaves is readable: a cut last line
// is ignored. A resumed run keeps the lines of the steps before its first one and drops the others, so that every step
// is there once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace penstock::report {

// Of the validation split, after a step.
struct EvalMetrics {
  double loss = 0;                      // mean over the tokens, nats
  std::optional<double> bits_per_byte;  // absent where the bytes are not known
  double accuracy = 0;                  // share of tokens that were the likeliest
  int64_t tokens = 0;
};

struct StepMetrics {
  int64_t step = 0;                 // 1, 2, ...
  double loss = 0;                  // mean over the valid items of the step; not finite: null in the file
  std::optional<double> grad_norm;  // before clipping; absent where the schedule has no check
  double learning_rate = 0;
  int64_t tokens = 0;  // valid ones of the step
  double seconds = 0;
  double tokens_per_second = 0;
  bool applied = true;                 // false: the update was skipped
  std::optional<double> loss_scale{};  // of this step; absent where the loss is not scaled
  std::vector<int64_t> peak_bytes;     // [rank], of the step; may be empty
  std::optional<EvalMetrics> eval{};   // only after steps that were followed by an evaluation
};

// One line, without the line end.
std::string PrintMetrics(const StepMetrics& metrics);
// UserError with file and line for anything but a cut last line. No file: no steps.
std::vector<StepMetrics> ReadMetrics(const std::string& path, FileSystem& files = FileSystem::Real());

// Used by one thread.
class MetricsWriter {
 public:
  // Keeps what the file has of steps before `first_step`.
  MetricsWriter(const std::string& path, int64_t first_step, FileSystem& files = FileSystem::Real());
  // The line is in the file when it returns (not necessarily on stable storage).
  void Write(const StepMetrics& metrics);

 private:
  std::unique_ptr<WritableFile> file_;
};

}  // namespace penstock::report
