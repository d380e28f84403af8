// tests/refused_locks.h
//
// A file system without locks, or one whose lock server does not answer: while a RefusedLocks lives, flock(2) fails
// with its error, in all threads. To be included by one file of a test program, whose flock replaces that of the C
// library.
#pragma once

#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace penstock {

class RefusedLocks {
 public:
  explicit RefusedLocks(int error) { error_ = error; }
  ~RefusedLocks() { error_ = 0; }
  RefusedLocks(const RefusedLocks&) = delete;
  RefusedLocks& operator=(const RefusedLocks&) = delete;
  static int error() { return error_; }

 private:
  inline static std::atomic<int> error_{0};
};

}  // namespace penstock

extern "C" int flock(int descriptor, int operation) noexcept {
  if (const int error = penstock::RefusedLocks::error(); error != 0) {
    errno = error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
}
