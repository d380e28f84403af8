#include "schedule/operators.h"

#include <algorithm>

namespace penstock::schedule {
namespace {

// Filled after static initialisation, on first use; then read-only.
const std::vector<const Operator*>& Table() {
  static const std::vector<const Operator*> table = [] {
    std::vector<const Operator*> entries;
    for (const auto& [name, op] : Registry<Operator>::All()) entries.push_back(&op);
    return entries;
  }();
  return table;
}

}  // namespace

OpId FindOp(std::string_view name) {
  const auto& table = Table();
  const auto it = std::lower_bound(table.begin(), table.end(), name,
                                   [](const Operator* op, std::string_view n) { return op->name < n; });
  if (it == table.end() || (*it)->name != name) {
    Registry<Operator>::Find(name);  // throws with the nearest names
    throw InternalError("operator registered after the table of operators was made");
  }
  return static_cast<OpId>(it - table.begin() + 1);
}

const Operator& OpOf(OpId id) {
  PENSTOCK_CHECK(id != kNoOp && id <= Table().size(), "operator id {} of {}", id, Table().size());
  return *Table()[id - 1];
}

std::string_view OpName(OpId id) { return id == kNoOp ? std::string_view() : std::string_view(OpOf(id).name); }

}  // namespace penstock::schedule
