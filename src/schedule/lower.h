// src/schedule/lower.h
//
// From the order of compute to a whole schedule: a data x pipeline mesh of ranks (rank = replica * P + position),
// replicas run contiguous runs of the global micro-batches, then the passes in their order, each named, switchable
// and verified after.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/builder.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace penstock::schedule {

struct LowerSpec {
  int data = 1;           // replicas
  int pipeline = 1;       // P
  int chunks = 1;         // V
  int micro_batches = 1;  // G, of the whole step
  bool fold = false;      // one replica stands for all (Schedule::copies); G must divide by the replicas
  std::string placement;  // empty: the builder's default
  // Parameters used by several stages: for each the stages, ascending (tied embeddings: {0, S-1}).
  std::vector<std::vector<uint16_t>> shared_parameters;
  // Stages that have parameters of their own; empty: all.
  std::vector<bool> stage_has_parameters;
  // Upper bound of the bytes of an edge's boundary for one micro-batch; empty: unknown (0).
  std::vector<int64_t> boundary_bytes;
  std::vector<int64_t> unit_bytes;  // gradient bytes of a parameter unit; empty: unknown

  enum class Split { as_ordered, always, never };
  Split split_backward = Split::as_ordered;
  std::vector<bool> recompute;  // [stage]; empty: none
  bool communication = true;    // off: compute only
  bool reduce = true;           // gradient reduction over holders
  bool check = true;            // norms, gathered statistics, non-finite and clip verdict before the update
  bool update = true;
};

// Compute of every replica, holders and groups; no pass has run. UserError when the mesh cannot be built.
Schedule AssembleCompute(const Builder& builder, const LowerSpec& spec);

struct Pass {
  std::string name;
  std::string summary;
  std::function<bool(const LowerSpec&)> enabled;
  std::function<void(Schedule&, const LowerSpec&)> run;
  // What a schedule has from this pass on, so that the verifier expects it.
  bool gives_messages = false;
  bool gives_updates = false;
};
// In order: split_backward, recompute, communication, reduce, check, update. One file each in passes/.
const std::vector<Pass>& Passes();

// What can be expected of a schedule after `pass`: what it and the enabled ones before it give.
VerifyOptions VerifyOptionsAfter(const Pass& pass, const LowerSpec& spec);

// Every enabled pass, in order, on a schedule of compute alone (built, or read from a file). `after_pass` (may be
// empty) sees the schedule after each.
void RunPasses(Schedule& schedule, const LowerSpec& spec,
               const std::function<void(const Pass&, const Schedule&)>& after_pass = {});

// The pipeline of one replica, with its share of the micro-batches: what `spec.fold` builds. UserError when the
// replicas are not alike.
LowerSpec Folded(const LowerSpec& spec);

// AssembleCompute, then RunPasses.
Schedule Lower(const Builder& builder, const LowerSpec& spec,
               const std::function<void(const Pass&, const Schedule&)>& after_pass = {});

}  // namespace penstock::schedule
