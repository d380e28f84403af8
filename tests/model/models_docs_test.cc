// docs/models.md lists every reference model, and nothing else, with what its spec says.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/registry.h"
#include "model/catalogue.h"
#include "paths.h"

namespace penstock::model {
namespace {

constexpr const char* kHead =
    "| name | family | what | parameters | layers | sample | forward flops per sample | source |\n"
    "|---|---|---|--:|--:|---|--:|---|\n";

// 1234567 -> "1,234,567"
std::string Grouped(int64_t n) {
  return n < 1000 ? fmt::format("{}", n) : fmt::format("{},{:03}", Grouped(n / 1000), n % 1000);
}

std::string Table() {
  std::string table = kHead;
  for (const auto& [name, entry] : Registry<CatalogueEntry>::All()) {
    const ModelSpec spec = entry.build();
    const std::string sample = entry.sample.size() > 1 ? fmt::format("{}", fmt::join(entry.sample, "x"))
                               : entry.length > 1      ? fmt::format("{} tokens", entry.sample[0])
                                                       : fmt::format("{} features", entry.sample[0]);
    table += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} |\n", name, spec.family, entry.summary,
                         Grouped(spec.parameter_count()), spec.layers.size(), sample,
                         Grouped(spec.forward_flops(1, entry.length)), entry.source);
  }
  return table;
}

TEST(ModelsDocs, TableIsTheCatalogue) {
  const std::string path = SourceFolder() + "/docs/models.md";
  const std::string page = ReadFile(path);
  const size_t begin = page.find("| name | family |");
  ASSERT_NE(begin, std::string::npos);
  const size_t end = std::min(page.find("\n\n", begin) + 1, page.size());
  if (std::getenv("PENSTOCK_UPDATE_GOLDENS") != nullptr) {
    WriteFileAtomically(path, page.substr(0, begin) + Table() + page.substr(end), /*overwrite=*/true);
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), Table()) << "PENSTOCK_UPDATE_GOLDENS=1 writes it";
}

}  // namespace
}  // namespace penstock::model
