#include "report/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/appended_file.h"

namespace penstock::report {
namespace {

template <typename T>
std::string Field(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

}  // namespace

std::string CsvHeader() {
  return "step,loss,grad_norm,lr,tokens,tokens_per_second,seconds,applied,loss_scale,peak_bytes,eval_loss,eval_bits_"
         "per_byte,"
         "eval_accuracy,eval_tokens";
}

std::string CsvRow(const StepMetrics& m) {
  const auto largest = std::max_element(m.peak_bytes.begin(), m.peak_bytes.end());
  std::string row = fmt::format("{},{},{},{},{},{},{},{},{},{}", m.step, m.loss, Field(m.grad_norm), m.learning_rate,
                                m.tokens, m.tokens_per_second, m.seconds, m.applied ? 1 : 0, Field(m.loss_scale),
                                largest == m.peak_bytes.end() ? "" : fmt::format("{}", *largest));
  const EvalMetrics eval = m.eval.value_or(EvalMetrics());
  return row + (m.eval ? fmt::format(",{},{},{},{}", eval.loss, Field(eval.bits_per_byte), eval.accuracy, eval.tokens)
                       : ",,,,");
}

CsvWriter::CsvWriter(const std::string& path, std::span<const StepMetrics> before, FileSystem& files) {
  std::string kept = fmt::format("{}\n", CsvHeader());
  for (const StepMetrics& m : before) kept += CsvRow(m) + "\n";
  file_ = BeginAnew(path, kept, files);
}

}  // namespace penstock::report
