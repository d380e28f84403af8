// src/base/error.h
//
// The three kinds of error (docs/errors.md), and the only exceptions Penstock throws on purpose:
//   UserError      the user's input is wrong: exit code 2. The message names the key, file or line and says what
//                  would work.
//   WorldError     the world failed (peer, disk, deadline): exit code 1. Typed, so that a caller may retry.
//   InternalError  an invariant of ours does not hold: exit code 1, prints both operands. Always a bug.
// Threads: all of it may be used from any thread.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace penstock {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  virtual int exit_code() const { return 1; }
};

class UserError : public Error {
 public:
  explicit UserError(const std::string& message) : Error(message) {}
  template <typename... Args>
  explicit UserError(fmt::format_string<Args...> format, Args&&... args)
      : Error(fmt::format(format, std::forward<Args>(args)...)) {}
  int exit_code() const override { return 2; }
};

class WorldError : public Error {
 public:
  using Error::Error;
};

// A rank died, or did not answer before the deadline. `rank` is the peer that was waited for (-1: unknown).
class PeerLost : public WorldError {
 public:
  PeerLost(int rank, const std::string& message) : WorldError(message), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

class InternalError : public Error {
 public:
  using Error::Error;
};

namespace internal {
[[noreturn]] void ThrowCheckFailed(const char* file, int line, const char* condition, const std::string& detail);
}  // namespace internal

}  // namespace penstock

// Invariants. PENSTOCK_CHECK(cond) or PENSTOCK_CHECK(cond, "format {}", args...): throws InternalError.
#define PENSTOCK_CHECK(condition, ...)                                                                       \
  do {                                                                                                       \
    if (!(condition)) [[unlikely]]                                                                           \
      ::penstock::internal::ThrowCheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (false)

// Prints both operands.
#define PENSTOCK_CHECK_EQ(a, b)                                                                       \
  do {                                                                                                \
    const auto& penstock_a = (a);                                                                     \
    const auto& penstock_b = (b);                                                                     \
    if (!(penstock_a == penstock_b)) [[unlikely]]                                                     \
      ::penstock::internal::ThrowCheckFailed(__FILE__, __LINE__, #a " == " #b,                        \
                                             ::fmt::format("{} against {}", penstock_a, penstock_b)); \
  } while (false)
