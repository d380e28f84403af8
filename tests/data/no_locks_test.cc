// Token files on a file system without locks.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "data/index_file.h"
#include "refused_locks.h"

namespace penstock::data {
namespace {

// Nobody is waited for: the index is built, kept where that can be, and it is said that others may build it as well.
TEST(IndexFile, WithoutLocksIsBuiltAllTheSame) {
  const std::string folder = testing::TempDir() + "/penstock_no_locks_test";
  std::filesystem::remove_all(folder);
  FileSystem::Real().CreateFolders(folder);
  const auto open = [&] {
    return IndexFile::Open(folder + "/index", {}, {}, [] { return std::vector<int64_t>{1, 2, 3}; });
  };
  const RefusedLocks refused(ENOSYS);
  testing::internal::CaptureStderr();
  const auto built = open();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(built->from_file());
  EXPECT_EQ(built->values()[2], 3);
  EXPECT_NE(said.find("Function not implemented"), std::string::npos) << said;
  EXPECT_TRUE(open()->from_file());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::data
