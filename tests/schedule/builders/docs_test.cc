// docs/schedules.md lists every registered schedule, and nothing else, with what the registry says.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "paths.h"
#include "schedule/builder.h"

namespace penstock::schedule {
namespace {

std::vector<std::string> Cells(const std::string& row) {
  std::vector<std::string> cells;
  size_t begin = row.find('|') + 1;
  for (size_t end = row.find('|', begin); end != std::string::npos; begin = end + 1, end = row.find('|', begin)) {
    std::string cell = row.substr(begin, end - begin);
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
    cells.push_back(cell);
  }
  return cells;
}

TEST(BuilderDocs, TableMatchesTheRegistry) {
  const std::string root = SourceFolder();
  const std::string page = ReadFile(root + "/docs/schedules.md");
  std::map<std::string, std::vector<std::string>> rows;
  for (size_t at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) {
    const auto cells = Cells(page.substr(at + 1, page.find('\n', at + 1) - at - 1));
    ASSERT_EQ(cells.size(), 9u) << cells[0];
    rows[cells[0].substr(1, cells[0].size() - 2)] = cells;
  }
  EXPECT_EQ(rows.size(), Registry<Builder>::All().size());
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    ASSERT_TRUE(rows.count(name)) << name << " has no row in docs/schedules.md";
    const auto& cells = rows[name];
    EXPECT_EQ(cells[1], builder.source);
    EXPECT_EQ(cells[2], builder.splits_backward ? "split" : "whole") << name;
    EXPECT_EQ(cells[3], fmt::format("{}", fmt::join(builder.placements, ", "))) << name;
    const std::string file = cells[8].substr(1, cells[8].size() - 2);
    EXPECT_TRUE(FileSystem::Real().Exists(root + "/src/schedule/builders/" + file)) << file;
  }
}

}  // namespace
}  // namespace penstock::schedule
