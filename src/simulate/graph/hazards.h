// src/simulate/graph/hazards.h
//
// Dependencies inside a rank that its streams do not give: read after write, write after read, write after write over
// the buffers of schedule/effects.h, in program order, between actions of different streams.
// Fast path: buffers of the step are numbered (class, unit, micro-batch), so that a look-up is an index; others are
// hashed. Linear in actions and effects.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/effects.h"
#include "schedule/schedule.h"

namespace penstock::simulate {

class HazardFinder {
 public:
  explicit HazardFinder(const schedule::Schedule& schedule);

  // Pairs (before, after) of indices in the list of `rank`, ascending by after, without repetitions. Valid until the
  // next call.
  const std::vector<std::pair<int32_t, int32_t>>& Of(int rank);

 private:
  struct Users {
    int32_t rank = -1;          // whose walk this entry belongs to: entries of former ranks are stale
    int32_t writer = -1;        // index of the last action that wrote, allocated or freed
    int32_t first_reader = -1;  // since then: list in readers_
  };
  Users& Find(const schedule::BufferId& id, int rank);
  int64_t Number(const schedule::BufferId& id) const;  // -1: none

  const schedule::Schedule& schedule_;
  schedule::EffectLister effects_of_;
  std::vector<bool> shared_;  // [class * slots + slot] something off the compute stream touches such buffers
  int64_t micro_batches_, stages_, edges_, units_, uses_;
  std::vector<Users> numbered_;
  std::unordered_map<schedule::BufferId, Users> others_;
  std::vector<std::pair<int32_t, int32_t>> readers_;  // (index, next)
  std::vector<schedule::Effect> effects_;
  std::vector<int32_t> before_;
  std::vector<std::pair<int32_t, int32_t>> found_;
};

}  // namespace penstock::simulate
