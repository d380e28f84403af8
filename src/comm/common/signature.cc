#include "comm/common/signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock::comm {

bool IsTree(CommKind kind) { return kind == CommKind::all_reduce_tree || kind == CommKind::reduce_scatter_tree; }

bool IsReduction(CommKind kind) {
  return IsTree(kind) || kind == CommKind::all_reduce || kind == CommKind::reduce_scatter;
}

std::string ToString(const Signature& s, const TagNamer& namer) {
  std::string text = fmt::format("{} '{}'", ToString(s.kind), namer(s.tag));
  if (s.type != at::ScalarType::Undefined) text += fmt::format(" ({}, {} elements", c10::toString(s.type), s.count);
  if (s.kind == CommKind::broadcast) text += fmt::format(", root {}", s.detail);
  if (IsTree(s.kind)) text += fmt::format(", {} leaves", s.detail);
  if (!s.bounds.empty()) text += fmt::format(", shards at {}", fmt::join(s.bounds, " "));
  if (s.type != at::ScalarType::Undefined) text += ")";
  return text;
}

}  // namespace penstock::comm
