// src/simulate/resources.h
//
// What actions of different ranks share: a link that several transfers cross, the network cards of a node, the cores of
// a machine. An action that could go alone at full speed takes `demand` of a resource per second; when all that run
// ask for more than there is, they slow down in proportion (shared), or one goes at a time, in order of arrival
// (serial).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace penstock::simulate {

struct Resource {
  std::string name;     // "cores of node 0", "node 3 outwards"
  double capacity = 1;  // in the unit of the demands
  bool serial = false;  // one action at a time, whatever its demand
};

struct ResourceUse {
  int32_t resource = 0;  // index in ResourceModel::resources()
  double demand = 1;
};

class ResourceModel {
 public:
  virtual ~ResourceModel() = default;
  virtual const std::vector<Resource>& resources() const = 0;
  // Appends what `action` of `rank` takes while it runs; each resource at most once.
  virtual void AppendUses(const schedule::Schedule& schedule, int rank, const schedule::Action& action,
                          std::vector<ResourceUse>& uses) const = 0;
};

}  // namespace penstock::simulate
