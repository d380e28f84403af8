// src/cost/placement.h
//
// Which device a rank is: the mesh tensor x data x pipeline laid over the devices of a cluster. A rank of a schedule is
// a cell of `tensor` devices that run every action together (rank = replica * pipeline + position).
// Orders, innermost first: tensor_data_pipeline (Megatron: replicas of a stage are neighbours), tensor_pipeline_data
// (a whole pipeline is near).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/group_link.h"
#include "cost/price.h"

namespace penstock::cost {

enum class MeshOrder : uint8_t { tensor_data_pipeline, tensor_pipeline_data };

class Placement {
 public:
  // UserError when the cluster has fewer devices than the mesh. The cluster is kept.
  Placement(std::shared_ptr<const cluster::Cluster> cluster, int64_t tensor, int64_t data, int64_t pipeline,
            MeshOrder order);

  const cluster::Cluster& cluster() const { return *cluster_; }
  int64_t tensor() const { return tensor_; }
  int64_t data() const { return data_; }
  int64_t pipeline() const { return pipeline_; }
  int64_t num_devices() const { return tensor_ * data_ * pipeline_; }
  // Devices of one machine: of the lowest level.
  int64_t devices_per_machine() const { return cluster_->levels.empty() ? 1 : cluster_->levels.front().size; }
  // Device of member 0 .. tensor - 1 of a rank of the unfolded schedule, 0 .. data * pipeline - 1.
  int64_t DeviceOf(int64_t rank, int64_t member = 0) const;
  // Device type of every member of the cell; UserError when they differ.
  const cluster::Device& DeviceTypeOf(int64_t rank) const;
  // How the members of a cell are joined.
  GroupLink CellLink(int64_t rank) const;

  // Do all replicas see what replica 0 sees: the same device types, and between positions links of the same level?
  // Empty when they do, else the first difference in words: then one cannot stand for all.
  std::string WhyNotAlike() const;

 private:
  std::shared_ptr<const cluster::Cluster> cluster_;
  int64_t tensor_, data_, pipeline_;
  MeshOrder order_;
};

}  // namespace penstock::cost
