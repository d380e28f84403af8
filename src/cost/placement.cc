#include "cost/placement.h"

#include <fmt/format.h>

#include "base/error.h"

namespace penstock::cost {

Placement::Placement(std::shared_ptr<const cluster::Cluster> cluster, int64_t tensor, int64_t data, int64_t pipeline,
                     MeshOrder order)
    : cluster_(std::move(cluster)), tensor_(tensor), data_(data), pipeline_(pipeline), order_(order) {
  PENSTOCK_CHECK(tensor >= 1 && data >= 1 && pipeline >= 1);
  // Products of three user numbers: in floating point first.
  const double wanted = static_cast<double>(tensor) * static_cast<double>(data) * static_cast<double>(pipeline);
  if (wanted > static_cast<double>(cluster_->num_devices()))
    throw UserError("{} tensor x {} data x {} pipeline are {:.0f} devices, and the cluster '{}' has {}", tensor, data,
                    pipeline, wanted, cluster_->name, cluster_->num_devices());
}

int64_t Placement::DeviceOf(int64_t rank, int64_t member) const {
  const int64_t replica = rank / pipeline_, position = rank % pipeline_;
  const int64_t cell = order_ == MeshOrder::tensor_data_pipeline ? position * data_ + replica : rank;
  return cell * tensor_ + member;
}

const cluster::Device& Placement::DeviceTypeOf(int64_t rank) const {
  const cluster::Device& first = cluster_->device(DeviceOf(rank));
  if (cluster_->device_of.empty()) return first;
  for (int64_t member = 1; member < tensor_; ++member) {
    const cluster::Device& other = cluster_->device(DeviceOf(rank, member));
    if (&other != &first)
      throw UserError(
          "the tensor-parallel group of rank {} has devices of two types, {} and {}; a smaller parallel.tensor or "
          "another order of devices would keep them apart",
          rank, first.name, other.name);
  }
  return first;
}

GroupLink Placement::CellLink(int64_t rank) const {
  std::vector<int64_t> devices;
  for (int64_t member = 0; member < tensor_; ++member) devices.push_back(DeviceOf(rank, member));
  return LinkOfGroup(*cluster_, devices);
}

std::string Placement::WhyNotAlike() const {
  for (int64_t replica = 1; replica < data_; ++replica) {
    for (int64_t position = 0; position < pipeline_; ++position) {
      const int64_t rank = replica * pipeline_ + position;
      if (!cluster_->device_of.empty() && &DeviceTypeOf(rank) != &DeviceTypeOf(position))
        return fmt::format("position {} is a {} in replica {} and a {} in replica 0", position, DeviceTypeOf(rank).name,
                           replica, DeviceTypeOf(position).name);
      if (tensor_ > 1 && !(CellLink(rank) == CellLink(position)))
        return fmt::format(
            "the tensor-parallel group of position {} is joined otherwise in replica {} than in replica "
            "0",
            position, replica);
      const int64_t next = (position + 1) % pipeline_;
      for (const auto& [a, b] : {std::pair{position, next}, std::pair{next, position}}) {
        const int64_t from = DeviceOf(replica * pipeline_ + a), to = DeviceOf(replica * pipeline_ + b);
        if (from == to) continue;
        const cluster::Link &mine = cluster_->LinkBetween(from, to),
                            &first = cluster_->LinkBetween(DeviceOf(a), DeviceOf(b));
        if (mine.latency_seconds != first.latency_seconds || mine.bytes_per_second != first.bytes_per_second ||
            mine.efficiency.points() != first.efficiency.points())
          return fmt::format("the link from position {} to {} is another in replica {} than in replica 0", a, b,
                             replica);
      }
    }
  }
  return "";
}

}  // namespace penstock::cost
