// src/comm/common/signature.h
//
// What a member of a group brings to one collective, and what all members must agree on. The same for every back end.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/tree.h"
#include "comm/tag.h"
#include "comm/traffic.h"

namespace penstock::comm {

// How a rank names tags; shared, because posted operations keep it for their messages.
using NamerPtr = std::shared_ptr<const TagNamer>;

// What all members must agree on.
struct Signature {
  CommKind kind = CommKind::barrier;
  Tag tag;
  at::ScalarType type = at::ScalarType::Undefined;
  int64_t count = 0;   // elements of the whole tensor; 0 where lengths are free
  int32_t detail = 0;  // root of a broadcast, leaves of a tree
  std::vector<int64_t> bounds;
  friend bool operator==(const Signature&, const Signature&) = default;
};
// "all_reduce 'loss' (float, 12 elements)".
std::string ToString(const Signature& signature, const TagNamer& namer);

// A canonical-tree reduction?
bool IsTree(CommKind kind);
// An addition of any kind?
bool IsReduction(CommKind kind);

// What one member brings.
struct Post {
  Signature signature;
  std::vector<at::Tensor> inputs;
  std::vector<TreeNode> nodes;  // of the inputs, when the kind is a tree
  at::Tensor out;
};

}  // namespace penstock::comm
