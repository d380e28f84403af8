// src/simulate/walk/action_classes.h
//
// The actions of a schedule by what they are apart from their micro-batch: forward of stage 3 on rank 3, sends of its
// boundary to rank 4, ... A rank of a pipeline has a few dozen such classes and thousands of actions. What depends on
// the class alone (stream, buffers, price) is found once per class, so that a replay costs a few look-ups per action.
// Operators other than messages are a class each: their effects may name any buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/effects.h"
#include "schedule/schedule.h"

namespace penstock::simulate {

// A buffer that an action touches, as an index into the cells of its rank.
struct CellUse {
  uint32_t cell = 0;             // of the first micro-batch
  bool per_micro_batch = false;  // then + micro-batch - first micro-batch of the rank
  bool read = false;             // else written, allocated or freed
};

struct ActionClass {
  schedule::ActionRef sample;           // the first action of the class
  int32_t lane = 0;                     // stream of the rank, numbered over all ranks
  uint32_t first_use = 0, end_use = 0;  // in ActionClasses::uses(): buffers that actions of different streams share
};

class ActionClasses {
 public:
  // `transport` says what a stream is (simulate/action_graph.h).
  ActionClasses(const schedule::Schedule& schedule, schedule::Transport transport);

  // Are the classes usable? No: a buffer of a message or a stage is of another micro-batch than its action.
  bool regular() const { return regular_; }
  bool has_messages() const { return has_messages_; }
  const std::vector<ActionClass>& classes() const { return classes_; }
  const std::vector<CellUse>& uses() const { return uses_; }
  const std::vector<uint32_t>& of_rank(int rank) const { return class_of_[rank]; }  // [index]
  int32_t num_lanes() const { return num_lanes_; }
  // Cells of all ranks: those of rank r are numbered from first_cell(r) on.
  size_t num_cells() const { return num_cells_; }
  size_t first_cell(int rank) const { return first_cell_[rank]; }
  int32_t first_micro_batch(int rank) const { return first_micro_batch_[rank]; }

 private:
  void Classify(schedule::Transport transport);
  void FindUses();

  const schedule::Schedule& schedule_;
  bool regular_ = true, has_messages_ = false, only_compute_ = true;
  std::vector<ActionClass> classes_;
  std::vector<CellUse> uses_;
  std::vector<std::vector<uint32_t>> class_of_;
  std::vector<uint32_t> first_class_;  // [rank], and the total
  int32_t num_lanes_ = 0;
  size_t num_cells_ = 0;
  std::vector<size_t> first_cell_;
  std::vector<int32_t> first_micro_batch_, micro_batches_;  // [rank]
  bool hazards_ = true;
};

}  // namespace penstock::simulate
