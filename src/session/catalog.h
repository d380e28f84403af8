// src/session/catalog.h
//
// What `penstock list` shows: sections of named things. A file registers its section (schedules, models, ...); the
// half that needs libtorch does so from session/run/.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/registry.h"

namespace penstock::session {

struct CatalogEntry {
  std::string name;
  std::string summary;
  std::string source;  // paper or place; may be empty
};

struct CatalogSection {
  static constexpr const char* kRegistryName = "section";
  std::string name;  // plural: "schedules"
  std::function<std::vector<CatalogEntry>()> entries;
};
using RegisterCatalogSection = Register<CatalogSection>;

// The entries of a registry whose members have a name and a summary.
template <typename T>
std::vector<CatalogEntry> EntriesOf() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, item] : Registry<T>::All()) {
    entries.push_back({name, item.summary, {}});
    if constexpr (requires { item.source; }) entries.back().source = item.source;
  }
  return entries;
}

struct ListOptions {
  std::string section;  // empty: all
  bool json = false;
};
// Exit code. UserError for an unknown section.
int RunList(const ListOptions& options, std::ostream& out);

}  // namespace penstock::session
