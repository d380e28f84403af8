#include "base/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "refused_locks.h"

namespace penstock {
namespace {

class FileLockTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/penstock_file_lock_test";
    std::filesystem::remove(path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(FileLockTest, OneAtATime) {
  std::string why;
  auto first = FileLock::Try(path_, &why);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(FileLock::Try(path_, &why), nullptr);
  EXPECT_EQ(why, "");
  EXPECT_EQ(FileLock::Holder(path_).rfind("process ", 0), 0u);
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_NE(FileLock::Try(path_, &why), nullptr);
}

// Where there are no locks nobody holds one: whoever waits for the holder would wait for ever.
TEST_F(FileLockTest, ThatCannotBeTakenIsNotHeld) {
  for (const int error : {ENOSYS, ENOLCK, EOPNOTSUPP, EIO}) {
    const RefusedLocks refused(error);
    std::string why;
    EXPECT_EQ(FileLock::Try(path_, &why), nullptr);
    EXPECT_NE(why.find(std::generic_category().message(error)), std::string::npos) << why;
    EXPECT_NE(why.find(path_), std::string::npos) << why;
    EXPECT_THROW(FileLock::Try(path_), WorldError);
    const int descriptor = ::open(path_.c_str(), O_RDWR);
    ASSERT_GE(descriptor, 0);
    EXPECT_THROW(LockDescriptor(descriptor, path_), WorldError);
    ::close(descriptor);
  }
  {
    const RefusedLocks held(EWOULDBLOCK);
    std::string why;
    EXPECT_EQ(FileLock::Try(path_, &why), nullptr);
    EXPECT_EQ(why, "");
  }
  EXPECT_NE(FileLock::Try(path_), nullptr);
}

}  // namespace
}  // namespace penstock
