// src/data/ordered_work.h
//
// A function over a sequence, on several threads, with the results in the order of the arguments.
// Used by one thread, which submits and takes. An exception of the function comes out of Take in its turn.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::data {

template <typename In, typename Out>
class OrderedWork {
 public:
  OrderedWork(int threads, std::function<Out(In)> function) : function_(std::move(function)) {
    for (int t = 0; t < threads; ++t) threads_.emplace_back([this] { Serve(); });
  }
  ~OrderedWork() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWork(const OrderedWork&) = delete;
  OrderedWork& operator=(const OrderedWork&) = delete;

  void Submit(In in) {
    auto item = std::make_shared<Item>();
    item->in.emplace(std::move(in));
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(item);
      order_.push_back(item);
    }
    changed_.notify_all();
  }
  size_t pending() const { return order_.size(); }
  // The result of the oldest; `waits` is called about twice a second until it is there.
  Out Take(const std::function<void()>& waits) {
    const std::shared_ptr<Item> item = order_.front();
    order_.pop_front();
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(500), [&] { return item->done; })) {
      lock.unlock();
      waits();
      lock.lock();
    }
    if (item->error) std::rethrow_exception(item->error);
    return std::move(*item->out);
  }

 private:
  struct Item {
    std::optional<In> in;
    std::optional<Out> out;
    std::exception_ptr error;
    bool done = false;
  };

  void Serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (stop_) return;
      const std::shared_ptr<Item> item = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      try {
        item->out.emplace(function_(std::move(*item->in)));
      } catch (...) {
        item->error = std::current_exception();
      }
      item->in.reset();
      lock.lock();
      item->done = true;
      changed_.notify_all();
    }
  }

  std::function<Out(In)> function_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Item>> waiting_;  // nobody works on them yet
  std::deque<std::shared_ptr<Item>> order_;    // of the using thread alone
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::data
