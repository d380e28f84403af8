// docs/run_directory.md names every file of a run and every column of its metrics, and nothing else.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "base/file.h"
#include "paths.h"
#include "report/csv.h"
#include "report/tensorboard.h"

namespace penstock {
namespace {

// The words in back quotes in the first cell of each row of the table under `heading`; all of those of the row with
// `column` 1.
std::vector<std::string> Cells(const std::string& text, const std::string& heading, int column) {
  std::vector<std::string> words;
  std::istringstream lines(text.substr(text.find(heading)));
  std::string line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.empty() || line[0] != '|') {
      if (inside) break;
      continue;
    }
    inside = true;
    std::istringstream cells(line);
    std::string cell;
    for (int i = 0; i <= column + 1; ++i) std::getline(cells, cell, '|');
    for (size_t at = 0; (at = cell.find('`', at)) != std::string::npos;) {
      const size_t end = cell.find('`', at + 1);
      words.push_back(cell.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  return words;
}

TEST(RunDirectoryDocs, Columns) {
  const std::string page = ReadFile(SourceFolder() + "/docs/run_directory.md");
  std::string header;
  for (const std::string& column : Cells(page, "## Metrics", 0)) header += (header.empty() ? "" : ",") + column;
  EXPECT_EQ(header, report::CsvHeader());
  report::StepMetrics m;
  m.grad_norm = 1;
  m.loss_scale = 1;
  m.peak_bytes = {1};
  m.eval = report::EvalMetrics{.loss = 1, .bits_per_byte = 1, .accuracy = 1, .tokens = 1};
  std::set<std::string> tags;
  for (const auto& [tag, value] : report::ScalarsOf(m)) tags.insert(tag);
  const auto named = Cells(page, "## Metrics", 1);
  EXPECT_EQ(std::set<std::string>(named.begin(), named.end()), tags);
}

}  // namespace
}  // namespace penstock
