// src/cost/plan_costs.h
//
// The price of every action of a plan, on a cluster: what builder hints, passes, planner and simulator all use. Compute
// is the sum over the layers of a stage (cost/layer_price.h), operators have their own prices (cost/operator_price.h).
// Measured times override what is computed, subject by subject (schedule/profile.h); what rests on neither a measured
// nor a stated range is marked (ActionCosts::Extrapolated).
// Threads: immutable after construction. The request's references must outlive it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cost/arithmetic.h"
#include "cost/group_link.h"
#include "cost/layer_price.h"
#include "cost/placement.h"
#include "cost/price.h"
#include "cost/stack.h"
#include "model/partition.h"
#include "model/spec.h"
#include "model/units.h"
#include "schedule/costs.h"
#include "schedule/profile.h"
#include "schedule/schedule.h"

namespace penstock::cost {

struct CostRequest {
  const model::ModelSpec& spec;
  const model::Partition& partition;
  const std::vector<model::ModelUnit>& units;  // same order as schedule.holders.units
  const schedule::Schedule& schedule;
  const Placement& placement;
  Arithmetic arithmetic{};
  int64_t samples = 1;  // of a micro-batch
  int64_t length = 1;   // tokens of a sample
  bool sequence_parallel = false;
  bool selective = false;                      // selective recomputation, in every stage
  int optimizer_states = 0;                    // values per parameter that the optimizer keeps
  std::string optimizer;                       // name, in subjects of the profile
  int threads = 1;                             // of one operation, on devices that share cores
  const schedule::Profile* profile = nullptr;  // may be null
  Stack stack{};
};

// Names the layer in subjects of a profile: its kind and everything its time depends on but the micro-batch.
std::string LayerSubject(const model::ModelSpec& spec, int layer);
// The part <precision> of a subject.
std::string PrecisionSubject(std::string_view precision, int threads);
// How many of `ranks` compute at once on `cores`, each with `threads`. Cores unknown (0): all.
int RanksAtOnce(int64_t ranks, int64_t cores, int threads);

class PlanCosts final : public schedule::ActionCosts<double> {
 public:
  explicit PlanCosts(const CostRequest& request);

  double Duration(const schedule::Schedule& schedule, int rank, const schedule::Action& action) const override;
  double Latency(const schedule::Schedule& schedule, int from, int to, const schedule::Action& send) const override;
  bool Extrapolated(const schedule::Schedule& schedule, int rank, const schedule::Action& action) const override;
  bool depends_on_micro_batch() const override { return false; }  // every micro-batch is counted full

  Price PriceOf(int rank, const schedule::Action& action) const;
  // Seconds of a step beside its actions (profile subject "step").
  double step_overhead() const { return step_overhead_; }
  // Sources of the prices, for people: how many subjects came from the profile, how many from the device.
  int measured_prices() const { return measured_; }
  int computed_prices() const { return computed_; }

  // For prices of operators (cost/ops).
  const CostRequest& request() const { return request_; }
  const cluster::Device& device(int rank) const { return *types_[type_of_[rank]].device; }
  // What the members of a group see: one collective per member of the tensor-parallel cells, beside each other.
  const GroupLink& link_of_group(int32_t group) const { return groups_[group]; }
  int64_t elements(int unit) const;  // of a parameter unit, of one member of the cell
  const std::string& precision_subject() const { return precision_; }
  // A boundary that comes in shares, put together by the members of a cell (Stack::gather_boundary).
  Price GatherBoundary(int rank, int edge) const;
  // Of one backward of a stage, both halves.
  double BackwardSeconds(int rank, int stage) const;
  // From the profile when it has the subject.
  std::optional<Price> Measured(const std::string& subject, double size) const;

 private:
  struct StagePrices {
    Price forward, backward, backward_input, backward_weight;  // backward: both halves at once
  };
  StagePrices PriceOfLayer(int layer, const LayerPrices& computed);
  std::optional<Price> MeasuredLayer(int layer, std::string_view kind) const;
  Price PriceOperator(int rank, const schedule::Action& action) const;
  Price PriceSend(int rank, const schedule::Action& action) const;
  void FindDevices();
  void FindGroups();
  void PriceStages();
  int64_t EdgeElements(int edge) const;              // of a boundary, on one member of the cell
  Price Transfer(int from, int to, int edge) const;  // of a boundary between two ranks, without latency
  double LatencyBetween(int from, int to) const;     // of two ranks
  // Of the messages that a compute action makes, where its rank waits for them (Stack::waits_for_sends).
  Price OwnSends(int rank, const schedule::Action& compute) const;

  const CostRequest request_;
  std::string precision_;  // in subjects of the profile
  int ranks_at_once_ = 1;
  // What prices of layers depend on but the stage: the device, and how the members of a cell are joined.
  struct RankType {
    const cluster::Device* device = nullptr;
    GroupLink tensor_link;
    bool operator==(const RankType&) const = default;
  };
  std::vector<RankType> types_;
  std::vector<int> type_of_;                            // [rank]
  std::vector<std::vector<StagePrices>> stages_;        // [type][stage]
  std::vector<GroupLink> groups_;                       // [group]
  std::array<Price, schedule::kKindCount> overhead_{};  // of an action, by kind; measured
  std::vector<std::vector<Price>> sends_;               // [level of the cluster][edge]
  double step_overhead_ = 0;
  int measured_ = 0, computed_ = 0;
};

}  // namespace penstock::cost
