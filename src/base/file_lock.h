// src/base/file_lock.h
//
// One process at a time: a lock on a file (flock) that ends with the process, however it ends. The file says who holds
// it and is removed with the lock. Works between processes and between threads. A lock is no output: it does not go
// through FileSystem. Some file systems have no locks (some network ones, as they are mounted): that is no other
// holder.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace penstock {

// Locks an open file, until its last descriptor is closed; false when another one holds it. WorldError with the reason
// of the system when it cannot be locked.
bool LockDescriptor(int descriptor, const std::string& path);

class FileLock {
 public:
  // Null when another one holds it, or (with `why` set) when the file cannot be opened or locked.
  static std::unique_ptr<FileLock> Try(const std::string& path, std::string* why = nullptr);
  // "process 1234 on host x", or "another process" when it does not say.
  static std::string Holder(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  FileLock(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

}  // namespace penstock
