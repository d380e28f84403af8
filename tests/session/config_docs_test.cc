// docs/config.md is what the declarations say.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "paths.h"
#include "session/settings.h"

namespace penstock::session {
namespace {

TEST(ConfigDocs, AreUpToDate) {
  EXPECT_EQ(ReadFile(SourceFolder() + "/docs/config.md"), LoadedSettings().config.MarkdownDocs())
      << "run: build/penstock config --markdown > docs/config.md";
}

// The defaults as a file are a valid configuration that changes nothing.
TEST(ConfigDocs, ResolvedDefaultsLoad) {
  const LoadedSettings defaults;
  LoadedSettings loaded;
  loaded.config.LoadText(defaults.config.ResolvedToml(), "resolved.toml");
  loaded.config.Finish();
  EXPECT_EQ(loaded.config.Json().dump(), defaults.config.Json().dump());
}

}  // namespace
}  // namespace penstock::session
