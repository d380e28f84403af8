// src/comm/group.h
//
// An ordered set of ranks that run collectives together. A value: cheap to copy, no resources of its own. Two groups
// with the same ranks and the same name are the same group and share one in-order queue; give groups of different
// meaning different names when their collectives may be issued in different orders.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace penstock::comm {

class Group {
 public:
  Group() = default;
  // `ranks`: strictly ascending ranks of the world. `self`: the caller's rank in the world. Made by
  // Communicator::CreateGroup, which checks both.
  Group(std::vector<int> ranks, std::string name, int self, int id);

  int size() const { return data_ ? static_cast<int>(data_->ranks.size()) : 0; }
  // Position of the caller in the group; -1 when it is not a member (it may hold the group but not use it).
  int rank() const { return data_ ? data_->position : -1; }
  const std::vector<int>& ranks() const { return data_->ranks; }
  const std::string& name() const { return data_->name; }
  // The back end's handle.
  int id() const { return data_->id; }
  // "data {0, 2}".
  std::string ToString() const;

 private:
  struct Data {
    std::vector<int> ranks;
    std::string name;
    int position;
    int id;
  };
  std::shared_ptr<const Data> data_;
};

}  // namespace penstock::comm
