// src/schedule/verify/meetings.h
//
// Which actions of different ranks meet: the k-th send with the k-th receive of a channel, the k-th collectives of a
// group. Actions are numbered over all ranks (Numbering).
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/verify/faults.h"

namespace penstock::schedule::verify {

class Numbering {
 public:
  explicit Numbering(const Schedule& schedule) : first_(schedule.ranks.size() + 1) {
    for (size_t r = 0; r < schedule.ranks.size(); ++r)
      first_[r + 1] = first_[r] + static_cast<int32_t>(schedule.ranks[r].size());
    rank_.resize(first_.back());
    for (size_t r = 0; r < schedule.ranks.size(); ++r)
      for (int32_t n = first_[r]; n < first_[r + 1]; ++n) rank_[n] = static_cast<int32_t>(r);
  }
  int32_t size() const { return first_.back(); }
  int32_t first(int rank) const { return first_[rank]; }
  int32_t of(ActionRef ref) const { return first_[ref.rank] + ref.index; }
  int32_t rank(int32_t node) const { return rank_[node]; }
  ActionRef ref(int32_t node) const { return {rank_[node], node - first_[rank_[node]]}; }

 private:
  std::vector<int32_t> first_, rank_;
};

struct Meetings {
  // [node] what a send or receive meets; -1: nothing, or no message.
  std::vector<int32_t> partner;
  // [node] index in collectives; -1: no collective.
  std::vector<int32_t> collective_of;
  struct Collective {
    std::vector<int32_t> nodes;  // by rank
    int32_t missing_rank = -1;   // a rank of the group that never comes
  };
  std::vector<Collective> collectives;
};

// Fills the meetings; messages and orders that do not match are faults.
Meetings FindMeetings(const Schedule& schedule, const Numbering& numbering, Faults& faults);

}  // namespace penstock::schedule::verify
