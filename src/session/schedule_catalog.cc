// The sections of schedule/ in `penstock list`.
#include <algorithm>

#include "schedule/builder.h"
#include "schedule/lower.h"
#include "schedule/operators.h"
#include "schedule/route.h"
#include "session/catalog.h"

namespace penstock::session {
namespace {

std::vector<CatalogEntry> Operators() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, op] : Registry<schedule::Operator>::All())
    entries.push_back({name, fmt::format("{}: {}", Name(op.kind), op.summary), {}});
  return entries;
}

std::vector<CatalogEntry> Placements() {
  std::vector<CatalogEntry> entries;
  for (const std::string& name : schedule::PlacementNames()) {
    std::string users;
    for (const auto& [builder, b] : Registry<schedule::Builder>::All())
      if (std::find(b.placements.begin(), b.placements.end(), name) != b.placements.end())
        users += (users.empty() ? "" : ", ") + builder;
    entries.push_back({name, "taken by " + users, {}});
  }
  return entries;
}

std::vector<CatalogEntry> PassesInOrder() {
  std::vector<CatalogEntry> entries;
  for (const schedule::Pass& pass : schedule::Passes()) entries.push_back({pass.name, pass.summary, {}});
  return entries;
}

const RegisterCatalogSection kPasses{{.name = "passes", .entries = &PassesInOrder}};
const RegisterCatalogSection kSchedules{{.name = "schedules", .entries = &EntriesOf<schedule::Builder>}};
const RegisterCatalogSection kOperators{{.name = "operators", .entries = &Operators}};
const RegisterCatalogSection kPlacements{{.name = "placements", .entries = &Placements}};

}  // namespace
}  // namespace penstock::session
