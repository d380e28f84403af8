#include "cost/two_stream_trace.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::cost {

template <typename Time>
void TwoStreamTrace<Time>::Add(std::string name, Work work, const Time& duration,
                               const std::vector<std::string>& after) {
  PENSTOCK_CHECK(!name.empty() && name.back() == '.', "operation '{}' of a trace", name);
  PENSTOCK_CHECK(!has(name), "operation '{}' is in the trace twice", name);
  Time& clock = clock_[IsCommunication(work) ? 1 : 0];
  Time start = clock;
  for (const std::string& prefix : after)
    for (auto it = index_.lower_bound(prefix); it != index_.end() && it->first.starts_with(prefix); ++it)
      start = std::max(start, ops_[it->second].end);
  clock = start + duration;
  busy_[static_cast<size_t>(work)] += duration;
  index_.emplace(name, ops_.size());
  ops_.push_back({std::move(name), work, start, clock});
}

template <typename Time>
const typename TwoStreamTrace<Time>::Op& TwoStreamTrace<Time>::op(std::string_view name) const {
  const auto it = index_.find(name);
  PENSTOCK_CHECK(it != index_.end(), "the trace has no operation '{}'", name);
  return ops_[it->second];
}

template <typename Time>
Time TwoStreamTrace<Time>::makespan() const {
  return std::max(clock_[0], clock_[1]);
}

template <typename Time>
Time TwoStreamTrace<Time>::compute() const {
  return Busy(Work::lookup) + Busy(Work::gemm);
}

template <typename Time>
Time TwoStreamTrace<Time>::communication() const {
  return Busy(Work::all_to_all) + Busy(Work::all_reduce) + Busy(Work::all_gather) + Busy(Work::reduce_scatter);
}

template class TwoStreamTrace<Rational>;
template class TwoStreamTrace<double>;

}  // namespace penstock::cost
