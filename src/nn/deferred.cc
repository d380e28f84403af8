#include "nn/deferred.h"

#include <torch/types.h>

#include <unordered_map>

#include "base/error.h"
#include "nn/functions/linear.h"

namespace penstock::nn {
namespace {
thread_local DeferredGrads* active_queue = nullptr;
}  // namespace

DeferredGrads::Scope::Scope(DeferredGrads& queue) {
  PENSTOCK_CHECK(active_queue == nullptr, "scopes of deferred gradients do not nest");
  active_queue = &queue;
}

DeferredGrads::Scope::~Scope() { active_queue = nullptr; }

DeferredGrads* DeferredGrads::active() { return active_queue; }

void DeferredGrads::Push(at::Tensor grad_output, at::Tensor x, at::Tensor weight, at::Tensor bias,
                         model::Precision precision) {
  for (const Entry& entry : queue_)
    PENSTOCK_CHECK(!entry.weight.is_same(weight), "a weight alias serves two Linears of one backward");
  queue_.push_back({std::move(grad_output), std::move(x), std::move(weight), std::move(bias), precision});
}

int64_t DeferredGrads::bytes() const {
  std::unordered_map<const void*, int64_t> storages;
  for (const Entry& entry : queue_)
    for (const at::Tensor* t : {&entry.grad_output, &entry.x})
      storages[t->storage().unsafeGetStorageImpl()] = static_cast<int64_t>(t->storage().nbytes());
  int64_t bytes = 0;
  for (const auto& [storage, size] : storages) bytes += size;
  return bytes;
}

void DeferredGrads::Flush(const std::function<void(Result)>& take) {
  at::NoGradGuard no_grad;
  for (Entry& entry : queue_) {
    LinearGrads grads = LinearWeightHalf(entry.grad_output, entry.x, entry.bias.defined(), entry.precision);
    entry.grad_output.reset();  // operands go as soon as they are used
    entry.x.reset();
    take({std::move(entry.weight), std::move(grads.weight)});
    if (entry.bias.defined()) take({std::move(entry.bias), std::move(grads.bias)});
  }
  queue_.clear();
}

}  // namespace penstock::nn
