#include "optim/partial_sums.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "optim/elementwise_kernel.h"

namespace penstock::optim {
namespace {

// Only we can see this memory.
bool Exclusive(const at::Tensor& tensor) { return tensor.use_count() == 1 && tensor.storage().use_count() == 1; }

}  // namespace

PartialSums::PartialSums(int32_t num_leaves, Mode mode, at::ScalarType accumulate)
    : num_leaves_(num_leaves), mode_(mode), accumulate_(accumulate), leaves_(num_leaves, false) {
  PENSTOCK_CHECK(num_leaves > 0, "a sum over {} micro-batches", num_leaves);
  PENSTOCK_CHECK(accumulate == at::kFloat || accumulate == at::kDouble, "gradients are accumulated in fp32 or fp64");
}

void PartialSums::Cover(TreeNode node) {
  PENSTOCK_CHECK(node.lo >= 0 && node.lo < node.hi && node.hi <= num_leaves_,
                 "[{}, {}) is not a range of {} micro-batches", node.lo, node.hi, num_leaves_);
  for (int32_t leaf = node.lo; leaf < node.hi; ++leaf) {
    PENSTOCK_CHECK(!leaves_[leaf], "the gradient of micro-batch {} was added twice", leaf);
    leaves_[leaf] = true;
  }
  covered_ += node.size();
}

void PartialSums::MergeInto(Sum& left, Sum&& right) {
  if (!right.tensor.defined()) return;
  if (!left.tensor.defined()) {
    left = std::move(right);
    return;
  }
  PENSTOCK_CHECK(left.tensor.sizes() == right.tensor.sizes(), "gradients of one parameter have different shapes");
  if (left.borrowed || !Exclusive(left.tensor)) left = {left.tensor.clone(at::MemoryFormat::Contiguous), false};
  const int64_t n = left.tensor.numel();
  if (left.tensor.scalar_type() == at::kFloat) {
    AddInto(left.tensor.mutable_data_ptr<float>(), right.tensor.const_data_ptr<float>(), n);
  } else {
    AddInto(left.tensor.mutable_data_ptr<double>(), right.tensor.const_data_ptr<double>(), n);
  }
}

void PartialSums::AddNode(TreeNode node, at::Tensor tensor, Memory memory) {
  Cover(node);
  const at::NoGradGuard no_grad;
  Sum sum{std::move(tensor), memory == Memory::borrowed};
  if (sum.tensor.defined() && (sum.tensor.scalar_type() != accumulate_ || !sum.tensor.is_contiguous()))
    sum = {sum.tensor.to(accumulate_).contiguous(), false};  // a changed dtype or stride order is new memory

  if (mode_ == Mode::running) {
    if (sum.tensor.defined()) peak_buffers_ = std::max(peak_buffers_, ++buffers_);
    if (sums_.empty()) {
      sums_.emplace(TreeNode{0, num_leaves_}, std::move(sum));
    } else {
      MergeInto(sums_.begin()->second, std::move(sum));
    }
    buffers_ = sums_.begin()->second.tensor.defined() ? 1 : 0;
    return;
  }

  PENSTOCK_CHECK(IsTreeNode(node, num_leaves_), "[{}, {}) is not a node of the tree over {} micro-batches", node.lo,
                 node.hi, num_leaves_);
  if (sum.tensor.defined()) peak_buffers_ = std::max(peak_buffers_, ++buffers_);
  auto at = sums_.emplace(node, std::move(sum)).first;
  while (node.size() < num_leaves_) {
    const auto sibling = sums_.find(TreeSibling(node, num_leaves_));
    if (sibling == sums_.end()) break;
    auto left = at, right = sibling;
    if (right->first.lo < left->first.lo) std::swap(left, right);
    if (left->second.tensor.defined() && right->second.tensor.defined()) --buffers_;
    MergeInto(left->second, std::move(right->second));
    Sum merged = std::move(left->second);
    sums_.erase(left);
    sums_.erase(right);
    node = TreeParent(node, num_leaves_);
    at = sums_.emplace(node, std::move(merged)).first;
  }
}

std::vector<std::pair<TreeNode, at::Tensor>> PartialSums::Take() {
  std::vector<std::pair<TreeNode, at::Tensor>> taken;
  for (auto& [node, sum] : sums_) taken.emplace_back(node, std::move(sum.tensor));
  if (mode_ == Mode::running && !taken.empty()) {
    const auto first = std::find(leaves_.begin(), leaves_.end(), true);
    const auto last = std::find(leaves_.rbegin(), leaves_.rend(), true);
    taken[0].first = {static_cast<int32_t>(first - leaves_.begin()), static_cast<int32_t>(leaves_.rend() - last)};
  }
  sums_.clear();
  leaves_.assign(num_leaves_, false);
  covered_ = 0;
  buffers_ = 0;
  return taken;
}

at::Tensor PartialSums::TakeRoot() {
  PENSTOCK_CHECK(covered_ == num_leaves_, "{} of {} micro-batches are in the gradient", covered_, num_leaves_);
  return std::move(Take()[0].second);
}

}  // namespace penstock::optim
