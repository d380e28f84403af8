// src/report/csv.h
//
// metrics.csv: what metrics.jsonl says, as a table for spreadsheets and plotting programs (RFC 4180, line ends are
// LF). One row per step; a value that the step does not have is an empty field, one that is not finite "nan", "inf" or
// "-inf". The columns are always the same ones in the same order (docs/run_directory.md); new ones come last.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/file.h"
#include "report/metrics.h"

namespace penstock::report {

// Without the line end.
std::string CsvHeader();
std::string CsvRow(const StepMetrics& metrics);

// Used by one thread.
class CsvWriter {
 public:
  // The file begins with the rows of `before`: those of the steps that a resumed run keeps.
  CsvWriter(const std::string& path, std::span<const StepMetrics> before, FileSystem& files = FileSystem::Real());
  void Write(const StepMetrics& metrics) { file_->Append(CsvRow(metrics) + "\n"); }

 private:
  std::unique_ptr<WritableFile> file_;
};

}  // namespace penstock::report
