// A run directory on a file system without locks.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "refused_locks.h"
#include "session/run/tiny_run.h"

namespace penstock::session {
namespace {

// Nothing is trained there, and the reason is not another training.
TEST(RunDirectoryWithoutLocks, IsRefused) {
  TinyRun run;
  const RefusedLocks refused(ENOSYS);
  const std::string other = run.folder() + "/other";
  for (const std::string& dir : {run.path(), other}) {
    try {
      run.Train({"train.steps=6", "run.dir='" + dir + "'"});
      ADD_FAILURE() << dir;
    } catch (const WorldError& error) {
      EXPECT_NE(std::string(error.what()).find("Function not implemented"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("another training"), std::string::npos) << error.what();
    }
  }
  EXPECT_FALSE(std::filesystem::exists(other + "/run.json"));
}

}  // namespace
}  // namespace penstock::session
