// src/session/plan.h
//
// From settings to a plan: the model cut into stages, and the lowered, verified schedule of one step. Needs no
// libtorch; `check` prints it and `train` runs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cost/arithmetic.h"
#include "cost/memory.h"
#include "model/partition.h"
#include "model/spec.h"
#include "model/units.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"
#include "session/settings.h"

namespace penstock::session {

struct Plan {
  model::ModelSpec spec;
  model::Partition partition;
  std::vector<model::ModelUnit> units;
  schedule::Schedule schedule;
  schedule::VerifyReport verdict;
  cost::MemoryEstimate memory;
  int64_t samples = 1, length = 1;  // of the largest micro-batch, of a sample
  std::string explanation;          // partition and batch arithmetic, a few lines, printed once
};

// What a plan is made for.
struct PlanTarget {
  bool runs = true;   // thread ranks of this machine; else only simulated, and may ask for more
  bool fold = false;  // one replica stands for all
  std::optional<cost::Arithmetic> arithmetic{};  // of another stack; none: this project's runtime
  bool trace_memory = false;                     // RankMemory::trace
};

// UserError naming the key and what would work when there is no such plan. The verdict may hold faults: the caller
// decides (`check` prints them, `train` refuses).
// `own_dataset`: the samples do not come from [data], so the tokenizer's vocabulary does not bound the model's.
Plan MakePlan(const LoadedSettings& settings, bool own_dataset = false, const PlanTarget& target = {});

// The model alone.
model::ModelSpec ModelOf(const LoadedSettings& settings, bool own_dataset = false);

// Tokens of a sample: data.sequence, or what a reference model is published with.
int64_t LengthOf(const LoadedSettings& settings);

// Micro-batches of a step; UserError when the batch does not divide and data.ragged is off.
int MicroBatchesOf(const Settings& settings);

// A schedule that the verifier refuses.
class UnsoundSchedule : public UserError {
 public:
  using UserError::UserError;
};

// UnsoundSchedule with the verifier's words unless the schedule is sound on thread ranks (eager and channelled
// transport), synchronous, and every update guarded by a check.
void RequireSound(const Plan& plan);

// The plan needs more memory than this machine has, or than it is allowed.
class DoesNotFit : public UserError {
 public:
  using UserError::UserError;
};

// Memory of this machine, or of the control group that the process runs in when that is less; 0 when neither can be
// read.
int64_t MachineMemory();

// DoesNotFit when the estimate for this machine, all its ranks together, is above runtime.memory_limit (0: above
// MachineMemory). The message says both, what is largest and what would help.
void RequireFits(const Plan& plan, const Settings& settings);

// A few lines: per rank the peak and what it is made of, and the sum for this machine.
std::string DescribeMemory(const cost::MemoryEstimate& memory);

}  // namespace penstock::session
