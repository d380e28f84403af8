// src/base/faulty_file_system.h
//
// A FileSystem for tests: passes everything to another one and fails when told to. Operations that change something
// (create, append, sync, close, rename, remove, remove all, sync folder, create folder) are counted from 1. Files
// whose path holds a word can be made unreadable. It keeps account of the names that a loss of power could still take.
// Threads: operations from any, one after the other; set_fault while
// none is under way.
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace penstock {

class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem& real = FileSystem::Real()) : real_(real) {}

  struct Fault {
    int64_t operation = 0;  // 0: never. The one that fails, counted from 1
    int error = ENOSPC;     // errno of the failure
    double written = 0;     // share of the bytes that a failing append still writes (a short write)
    bool crash = false;     // everything after it fails too, as if the process had been killed
  };
  void set_fault(Fault fault) {
    fault_ = fault;
    operations_ = 0;
  }
  int64_t operations() const { return operations_; }

  // Files and folders that were created here, or renamed to this name, in folders that were not synced since;
  // ascending.
  std::vector<std::string> NotDurable() const;

  // Reading from (or `at_open`, opening) files whose path holds `word` fails with this errno; empty: of none.
  struct Unreadable {
    std::string word{};
    int error = EIO;
    bool at_open = true;
  };
  void set_unreadable(Unreadable unreadable) { unreadable_ = std::move(unreadable); }

  std::unique_ptr<WritableFile> Create(const std::string& path) override;
  std::unique_ptr<ReadableFile> Open(const std::string& path) override;
  bool Exists(const std::string& path) override { return real_.Exists(path); }
  void Rename(const std::string& from, const std::string& to, bool overwrite) override;
  void Remove(const std::string& path) override;
  void RemoveAll(const std::string& path) override;
  std::vector<std::string> List(const std::string& path) override { return real_.List(path); }
  void SyncFolder(const std::string& path) override;
  bool CreateFolder(const std::string& path) override;

 private:
  friend class FaultyWritableFile;
  // Counts one operation; true when it has to fail. `first`: whether it is the one that was chosen.
  bool Fails(bool* first = nullptr);
  [[noreturn]] void Throw(const std::string& path) const;
  void NoteName(const std::string& path);
  void ForgetName(const std::string& path);  // and what is in it

  FileSystem& real_;
  Fault fault_;
  Unreadable unreadable_;
  mutable std::mutex mutex_;
  int64_t operations_ = 0;
  std::set<std::string> not_durable_;
};

}  // namespace penstock
