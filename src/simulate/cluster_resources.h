// src/simulate/cluster_resources.h
//
// What ranks share on a cluster: the cores of a machine (devices that are threads of it) and what a node has towards
// the level above (its network cards), when its devices together could ask for more.
#pragma once

#include <string>
#include <vector>

#include "cost/placement.h"
#include "simulate/resources.h"

namespace penstock::simulate {

class ClusterResources final : public ResourceModel {
 public:
  // `threads`: of one operation, on devices that share cores. References must outlive the object.
  ClusterResources(const schedule::Schedule& schedule, const cost::Placement& placement, int threads);
  // Empty when nothing can be asked for beyond its capacity.
  const std::vector<Resource>& resources() const override { return resources_; }
  void AppendUses(const schedule::Schedule& schedule, int rank, const schedule::Action& action,
                  std::vector<ResourceUse>& uses) const override;

 private:
  struct Uplink {
    int32_t out = -1, in = -1;  // resources; -1: none
  };
  void AddCores(const schedule::Schedule& schedule);
  void AddUplinks(const schedule::Schedule& schedule);
  double RingDemand(const std::vector<int32_t>& group, int level) const;

  const cost::Placement& placement_;
  const int threads_;
  std::vector<Resource> resources_;
  std::vector<int32_t> cores_of_;             // [rank]; -1: its own
  std::vector<std::vector<Uplink>> uplinks_;  // [level][rank]
  std::vector<int> level_of_group_;           // [group] the highest at which its members part; -1: one device
  std::vector<double> ring_demand_;           // [group] of each member, bytes per second
};

}  // namespace penstock::simulate
