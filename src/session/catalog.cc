#include "session/catalog.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"

namespace penstock::session {

int RunList(const ListOptions& options, std::ostream& out) {
  std::vector<const CatalogSection*> sections;
  if (options.section.empty())
    for (const auto& [name, section] : Registry<CatalogSection>::All()) sections.push_back(&section);
  else
    sections.push_back(&Registry<CatalogSection>::Find(options.section));

  if (options.json) {
    auto document = nlohmann::ordered_json::object();
    for (const CatalogSection* section : sections) {
      auto list = nlohmann::ordered_json::array();
      for (const CatalogEntry& e : section->entries())
        list.push_back({{"name", e.name}, {"summary", e.summary}, {"source", e.source}});
      document[section->name] = std::move(list);
    }
    out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  for (const CatalogSection* section : sections) {
    const auto entries = section->entries();
    size_t width = 0;
    for (const CatalogEntry& e : entries) width = std::max(width, e.name.size());
    out << section->name << "\n";
    for (const CatalogEntry& e : entries)
      out << fmt::format("  {:<{}}  {}{}\n", e.name, width, e.summary, e.source.empty() ? "" : "  [" + e.source + "]");
  }
  return 0;
}

}  // namespace penstock::session
