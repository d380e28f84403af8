#include "comm/reduce_plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "comm/add_kernel.h"

namespace penstock::comm {
namespace {

// Sources stream through in blocks of this size, so that partial sums stay in the first-level cache.
constexpr int64_t kBlockBytes = 16 << 10;

class TreePlanner {
 public:
  TreePlanner(const std::vector<TreeNode>& nodes, std::vector<int32_t> order)
      : nodes_(nodes), order_(std::move(order)) {}

  // The contributions order_[first, last) lie in `node`.
  std::optional<Operand> Plan(TreeNode node, size_t first, size_t last) {
    if (first == last) return std::nullopt;
    if (nodes_[order_[first]] == node) return order_[first];
    size_t middle = first;
    while (middle < last && nodes_[order_[middle]].lo < node.mid()) ++middle;
    const auto a = Plan(node.left(), first, middle);
    const auto b = Plan(node.right(), middle, last);
    if (!a || !b) return a ? a : b;
    return Add(*a, *b);
  }

  ReducePlan plan;

 private:
  Operand Add(Operand a, Operand b) {
    int32_t slot;
    if (a < 0) {
      slot = ~a;
      if (b < 0) free_slots_.push_back(~b);
    } else if (b < 0) {
      slot = ~b;
    } else if (!free_slots_.empty()) {
      slot = free_slots_.back();
      free_slots_.pop_back();
    } else {
      slot = plan.num_slots++;
    }
    plan.additions.push_back({slot, a, b});
    return ScratchOperand(slot);
  }

  const std::vector<TreeNode>& nodes_;
  std::vector<int32_t> order_;
  std::vector<int32_t> free_slots_;
};

template <typename T>
void Run(const ReducePlan& plan, const std::vector<const void*>& sources, const std::vector<Destination>& destinations,
         int64_t begin, int64_t end) {
  constexpr int64_t kBlock = kBlockBytes / sizeof(T);
  thread_local std::vector<T> scratch;
  scratch.resize(std::max<size_t>(scratch.size(), std::max(plan.num_slots, 1) * kBlock));
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    const auto operand = [&](Operand x) {
      return x >= 0 ? static_cast<const T*>(sources[x]) + at : scratch.data() + ~x * kBlock;
    };
    const T* result;
    if (plan.empty) {
      std::fill_n(scratch.data(), n, T{0});
      result = scratch.data();
    } else {
      for (const Addition& step : plan.additions) {
        AddArrays(scratch.data() + step.slot * kBlock, operand(step.a), operand(step.b), n);
      }
      result = operand(plan.result);
    }
    for (const Destination& d : destinations) {
      T* out = static_cast<T*>(d.data) + (at - d.first);
      if (out != result) std::memcpy(out, result, n * sizeof(T));
    }
  }
}

}  // namespace

ReducePlan FoldPlan(int num_sources) {
  ReducePlan plan;
  plan.empty = num_sources == 0;
  plan.num_slots = num_sources > 1 ? 1 : 0;
  for (int i = 1; i < num_sources; ++i) {
    plan.additions.push_back({0, plan.result, i});
    plan.result = ScratchOperand(0);
  }
  return plan;
}

ReducePlan TreePlan(const std::vector<TreeNode>& nodes, int32_t n_leaves) {
  std::vector<int32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return nodes[a] < nodes[b]; });
  for (size_t i = 0; i < order.size(); ++i) {
    const TreeNode node = nodes[order[i]];
    PENSTOCK_CHECK(IsTreeNode(node, n_leaves), "[{}, {}) is not a node of the tree over {} leaves", node.lo, node.hi,
                   n_leaves);
    if (i == 0) continue;
    const TreeNode before = nodes[order[i - 1]];
    PENSTOCK_CHECK(before.hi <= node.lo, "the partial sums [{}, {}) and [{}, {}) share leaves", before.lo, before.hi,
                   node.lo, node.hi);
  }
  TreePlanner planner(nodes, std::move(order));
  const auto result = planner.Plan({0, n_leaves}, 0, nodes.size());
  planner.plan.empty = !result.has_value();
  planner.plan.result = result.value_or(0);
  return std::move(planner.plan);
}

bool CanReduce(at::ScalarType type) {
  return type == at::kFloat || type == at::kDouble || type == at::kInt || type == at::kLong;
}

void RunReduce(const ReducePlan& plan, at::ScalarType type, const std::vector<const void*>& sources,
               const std::vector<Destination>& destinations, int64_t begin, int64_t end) {
  switch (type) {
    case at::kFloat:
      return Run<float>(plan, sources, destinations, begin, end);
    case at::kDouble:
      return Run<double>(plan, sources, destinations, begin, end);
    case at::kInt:
      return Run<int32_t>(plan, sources, destinations, begin, end);
    case at::kLong:
      return Run<int64_t>(plan, sources, destinations, begin, end);
    default:
      PENSTOCK_CHECK(false, "cannot reduce {}", c10::toString(type));
  }
}

}  // namespace penstock::comm
