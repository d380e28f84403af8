// src/base/background_task.h
//
// A function on a thread of its own, with its end and its exception.
// Threads: Done from any; Wait and destruction by the owner.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace penstock {

class BackgroundTask {
 public:
  explicit BackgroundTask(std::function<void()> work)
      : thread_([this, work = std::move(work)]() mutable {
          try {
            work();
          } catch (...) {
            error_ = std::current_exception();
          }
          work = nullptr;  // what it captured is released here, not when somebody asks
          done_.store(true, std::memory_order_release);
        }) {}
  // Waits. An exception that nobody asked for is dropped.
  ~BackgroundTask() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  bool Done() const { return done_.load(std::memory_order_acquire); }
  // Rethrows what the function threw, the first time.
  void Wait() {
    if (thread_.joinable()) thread_.join();
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;  // written before done_
  std::atomic<bool> done_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace penstock
