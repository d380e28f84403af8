#include "runtime/buffers.h"

#include "base/error.h"

namespace penstock::runtime {

Buffer& BufferStore::At(const schedule::BufferId& id) {
  const auto it = buffers_.find(id);
  PENSTOCK_CHECK(it != buffers_.end(), "there is no buffer '{}'", schedule::ToString(id));
  return it->second;
}

Buffer* BufferStore::Find(const schedule::BufferId& id) {
  const auto it = buffers_.find(id);
  return it == buffers_.end() ? nullptr : &it->second;
}

Buffer& BufferStore::Allocate(const schedule::BufferId& id) {
  const auto [it, fresh] = buffers_.try_emplace(id);
  PENSTOCK_CHECK(fresh, "buffer '{}' is allocated twice", schedule::ToString(id));
  return it->second;
}

Buffer& BufferStore::Obtain(const schedule::BufferId& id) { return buffers_[id]; }

void BufferStore::Free(const schedule::BufferId& id) {
  PENSTOCK_CHECK(buffers_.erase(id) == 1, "buffer '{}' is freed but does not exist", schedule::ToString(id));
}

void BufferStore::Settle(Buffer& buffer) {
  if (buffer.works.empty()) return;
  for (const comm::WorkPtr& work : buffer.works) work->Wait();
  if (buffer.on_ready) buffer.on_ready(buffer);
  buffer.works.clear();
  buffer.on_ready = nullptr;
}

void BufferStore::WaitFor(const schedule::BufferId& id) {
  if (Buffer* buffer = Find(id)) Settle(*buffer);
}

void BufferStore::WaitForAll() {
  for (auto& [id, buffer] : buffers_) Settle(buffer);
}

void BufferStore::EndStep() {
  for (auto it = buffers_.begin(); it != buffers_.end();) {
    PENSTOCK_CHECK(schedule::LifetimeOf(it->first.buffer_class) == schedule::Lifetime::whole_step,
                   "buffer '{}' is left at the end of the step", schedule::ToString(it->first));
    it = buffers_.erase(it);
  }
}

}  // namespace penstock::runtime
