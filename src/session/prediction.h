// src/session/prediction.h
//
// What a plan will take before it runs: the schedule that would be trained, priced on a cluster and simulated.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster.h"
#include "cost/placement.h"
#include "cost/plan_costs.h"
#include "session/plan.h"
#include "session/settings.h"
#include "simulate/simulate.h"

namespace penstock::session {

struct Prediction {
  std::shared_ptr<const cluster::Cluster> cluster;
  std::shared_ptr<const schedule::Profile> profile;  // may be empty
  std::shared_ptr<const cost::Placement> placement;
  std::shared_ptr<const cost::PlanCosts> costs;  // refers to the plan
  simulate::Simulation simulation;
  double step_seconds = 0;             // makespan, and what a step takes beside its actions
  std::vector<int64_t> memory_bytes;   // [rank] predicted peak
  std::vector<int64_t> memory_limits;  // [rank] of its device; 0: not known
  // [machine] of the ranks on it together, where ranks share the memory of a machine (devices with cores); else empty.
  std::vector<int64_t> machine_bytes;
  double tokens_per_second = 0;  // of all replicas
  double model_flops = 0;        // of a step: forward and backward without recomputation, all replicas
  double peak_flops = 0;         // per second, of all devices together
  double price_per_step = 0;     // 0: the cluster has no prices
  int64_t devices = 0;
  int64_t copies = 1;
  bool ranks_take_turns = false;  // on the cores of one machine
  bool calibrated = false;        // the cluster was measured, or every layer's price on a machine like it
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> warnings;

  double utilisation() const { return peak_flops > 0 ? model_flops / step_seconds / peak_flops : 0; }
  bool fits() const;
};

// The cluster that the settings name. UserError when it does not exist; where nobody chose one and this machine was
// never calibrated, a generic CPU with this machine's cores.
std::shared_ptr<const cluster::Cluster> ClusterOf(const LoadedSettings& settings);
// What thread ranks run on, whatever cluster the settings name.
std::shared_ptr<const cluster::Cluster> ThisMachine();

// Of a plan that was made for the target of the same settings. `plan` must outlive Prediction::costs; all else is a
// copy.
Prediction Predict(const LoadedSettings& settings, const Plan& plan, std::shared_ptr<const cluster::Cluster> cluster);

// Plan and prediction for `simulate`: folds replicas where that changes nothing. UnsoundSchedule with the verifier's
// words when the schedule has faults.
struct Simulated {
  std::unique_ptr<const Plan> plan;  // stays where it is: the prediction's costs refer to it
  Prediction prediction;
};
Simulated SimulatePlan(const LoadedSettings& settings);

// The arithmetic that the settings ask for on this cluster; none: the runtime's own.
std::optional<cost::Arithmetic> ArithmeticOf(const LoadedSettings& settings, const cluster::Cluster& cluster);

}  // namespace penstock::session
