#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/faulty_file_system.h"

namespace penstock {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/penstock_file_test_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  int Count() const { return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {})); }

  std::string folder_;
};

TEST_F(FileTest, WritesAndReads) {
  const std::string bytes("a\0b\n", 4);
  WriteFileAtomically(Path("x"), bytes);
  EXPECT_EQ(ReadFile(Path("x")), bytes);
  EXPECT_EQ(Count(), 1);
  char two[2];
  const auto file = FileSystem::Real().Open(Path("x"));
  EXPECT_EQ(file->size(), 4);
  file->ReadAt(2, two);
  EXPECT_EQ(std::string(two, 2), "b\n");
  EXPECT_THROW(file->ReadAt(3, two), WorldError);
}

TEST_F(FileTest, OverwritesOnlyWhenAsked) {
  WriteFileAtomically(Path("x"), "old");
  EXPECT_THROW(WriteFileAtomically(Path("x"), "new"), UserError);
  EXPECT_EQ(ReadFile(Path("x")), "old");
  WriteFileAtomically(Path("x"), "new", true);
  EXPECT_EQ(ReadFile(Path("x")), "new");
  EXPECT_EQ(Count(), 1);
}

TEST_F(FileTest, AFileThatAppearsBeforeCommitIsNotOverwritten) {
  {
    AtomicFile file(Path("x"));
    file.Append("mine");
    std::ofstream(Path("x")) << "theirs";
    EXPECT_THROW(file.Commit(), UserError);
  }
  EXPECT_EQ(ReadFile(Path("x")), "theirs");
  EXPECT_EQ(Count(), 1);
}

TEST_F(FileTest, WithoutCommitNothingIsLeft) {
  { AtomicFile(Path("x")).Append("half"); }
  EXPECT_EQ(Count(), 0);
}

TEST_F(FileTest, ErrorsNameThePath) {
  try {
    ReadFile(Path("missing"));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("missing': No such file"), std::string::npos) << error.what();
  }
  EXPECT_THROW(ReadFile(folder_), UserError);
  EXPECT_THROW(WriteFileAtomically(Path("no/such/folder"), ""), UserError);
  FileSystem::Real().CreateFolders(Path("no/such"));
  WriteFileAtomically(Path("no/such/folder"), "");
  EXPECT_THROW(FileSystem::Real().CreateFolders(Path("no/such/folder/x")), Error);
}

// A folder is as durable as its name in the folder around it, and so on up to one that was there.
TEST_F(FileTest, FoldersAreDurable) {
  folder_ = std::filesystem::path(folder_).lexically_normal();  // as they are listed
  FaultyFileSystem files;
  files.CreateFolder(Path("noticed"));
  EXPECT_EQ(files.NotDurable(), (std::vector<std::string>{Path("noticed")}));
  files.CreateFolders(Path("noticed"));
  EXPECT_EQ(files.NotDurable().size(), 1u) << "somebody else's affair: it was there";
  files.SyncFolder(folder_);
  files.set_fault({});
  for (const std::string& path : {Path("a/b/c"), Path("a/b/d/"), Path("e/./f"), Path("g//h")}) {
    files.CreateFolders(path);
    EXPECT_TRUE(std::filesystem::is_directory(path));
    EXPECT_EQ(files.NotDurable(), std::vector<std::string>{}) << path;
  }
  EXPECT_GE(files.operations(), 2 * 8);
  WriteFileAtomically(Path("a/b/c/x"), "", false, files);
  EXPECT_EQ(files.NotDurable(), std::vector<std::string>{});
  const auto file = files.Create(Path("a/b/c/y"));
  files.Rename(Path("a/b"), Path("b"), false);
  EXPECT_EQ(files.NotDurable(), (std::vector<std::string>{Path("b"), Path("b/c/y")}));
  files.SyncFolder(folder_);
  files.SyncFolder(Path("b/c"));
  EXPECT_EQ(files.NotDurable(), std::vector<std::string>{});
  // What cannot be synced is not taken for done.
  files.set_fault({.operation = 2});
  EXPECT_THROW(files.CreateFolders(Path("last")), WorldError);
  EXPECT_EQ(files.NotDurable(), std::vector<std::string>{Path("last")});
  EXPECT_THROW(FileSystem::Real().CreateFolders(Path("b/c/y/z")), UserError);
  EXPECT_THROW(FileSystem::Real().CreateFolders(Path("b/c/y")), UserError);
}

// Paths that lead nowhere are the user's to mend; a pipe is refused, not waited at.
TEST_F(FileTest, WhatIsNoFileIsRefused) {
  namespace fs = std::filesystem;
  fs::create_symlink(Path("loop"), Path("loop"));
  fs::create_symlink(Path("nothing"), Path("dangling"));
  fs::create_symlink(folder_, Path("folder"));
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::string too_long(5000, 'x');
  for (const std::string& name : {std::string("loop"), std::string("dangling"), std::string("folder"),
                                  std::string("pipe"), std::string("pipe/x"), too_long}) {
    try {
      ReadFile(Path(name));
      ADD_FAILURE() << name;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(Path(name)), std::string::npos) << error.what();
    }
  }
  EXPECT_FALSE(FileSystem::Real().Exists(Path(too_long)));
  EXPECT_TRUE(FileSystem::Real().Exists(Path("loop")));
}

// Whatever operation fails, and whether the process lives on or dies there: the old content or the new, nothing else.
TEST_F(FileTest, EveryFaultLeavesOldOrNew) {
  FaultyFileSystem files;
  const auto write = [&] {
    AtomicFile file(Path("x"), true, files);
    file.Append("new ");
    file.Append("content");
    file.Commit();
  };
  files.set_fault({});
  write();
  const int64_t operations = files.operations();
  EXPECT_EQ(operations, 7);  // create, two appends, sync, close, rename, sync folder
  for (const bool crash : {false, true}) {
    for (int64_t n = 1; n <= operations; ++n) {
      std::filesystem::remove_all(folder_);
      std::filesystem::create_directories(folder_);
      WriteFileAtomically(Path("x"), "old");
      files.set_fault({.operation = n, .error = ENOSPC, .written = 0.5, .crash = crash});
      try {
        write();
        FAIL() << "operation " << n;
      } catch (const WorldError& error) {
        EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
      }
      EXPECT_EQ(ReadFile(Path("x")), n < 7 ? "old" : "new content") << n;
      // A dead process cannot tidy up; a living one does.
      if (!crash) {
        EXPECT_EQ(Count(), 1) << n;
      }
    }
  }
}

}  // namespace
}  // namespace penstock
