// src/cost/two_stream_trace.h
//
// The trace of MAD-Max (Hsia et al., ISCA 2024, arXiv 2310.02784): one device with a compute and a communication
// stream, both in order. An operation starts when its stream is free and everything it names has ended. A dependency is
// a prefix of names: it means all operations placed so far whose names begin with it, and none is allowed to match.
// Names end with '.', so that "f.1." is not a prefix of "f.11.".
// Time: Rational or double. Threads: one object, one thread. Errors: InternalError for a name without its '.', or
// twice.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/rational.h"

namespace penstock::cost {

enum class Work : uint8_t { lookup, gemm, all_to_all, all_reduce, all_gather, reduce_scatter };
inline constexpr int kWorkCount = 6;
inline constexpr std::array<std::string_view, kWorkCount> kWorkNames = {"lookup",     "gemm",       "all_to_all",
                                                                        "all_reduce", "all_gather", "reduce_scatter"};
constexpr std::string_view Name(Work work) { return kWorkNames[static_cast<size_t>(work)]; }
constexpr bool IsCommunication(Work work) { return work >= Work::all_to_all; }

template <typename Time>
class TwoStreamTrace {
 public:
  struct Op {
    std::string name;
    Work work = Work::gemm;
    Time start = 0, end = 0;
  };

  void Add(std::string name, Work work, const Time& duration, const std::vector<std::string>& after = {});

  const std::vector<Op>& ops() const { return ops_; }  // as added
  const Op& op(std::string_view name) const;           // InternalError when there is none
  bool has(std::string_view name) const { return index_.find(name) != index_.end(); }
  Time makespan() const;
  Time Busy(Work work) const { return busy_[static_cast<size_t>(work)]; }
  Time compute() const;
  Time communication() const;
  // Communication that no compute covers: what the compute stream waits for it, also at the end.
  Time exposed() const { return makespan() - compute(); }

 private:
  std::vector<Op> ops_;
  std::map<std::string, size_t, std::less<>> index_;
  std::array<Time, 2> clock_{};  // compute, communication
  std::array<Time, kWorkCount> busy_{};
};

extern template class TwoStreamTrace<Rational>;
extern template class TwoStreamTrace<double>;

}  // namespace penstock::cost
