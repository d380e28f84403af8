// Clusters, software stacks and reference models in `penstock list`.
#include "cluster/read.h"
#include "cost/stack.h"
#include "model/catalogue.h"
#include "session/catalog.h"

namespace penstock::session {
namespace {

std::vector<CatalogEntry> Clusters() {
  std::vector<CatalogEntry> entries;
  for (const cluster::ClusterEntry& entry : cluster::ShippedClusters())
    entries.push_back({entry.name, fmt::format("{} ({} devices)", entry.summary, entry.devices), {}});
  entries.push_back({std::string(cluster::kThisMachine), "what `penstock doctor --calibrate` measured here", {}});
  return entries;
}

const RegisterCatalogSection kClusters{{.name = "clusters", .entries = &Clusters}};
const RegisterCatalogSection kStacks{{.name = "stacks", .entries = &EntriesOf<cost::Stack>}};
const RegisterCatalogSection kReferenceModels{
    {.name = "reference-models", .entries = &EntriesOf<model::CatalogueEntry>}};

}  // namespace
}  // namespace penstock::session
