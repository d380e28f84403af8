// src/cluster/library/shipped.h
//
// The files clusters/*.toml as they were when Penstock was built. cmake/Clusters.cmake writes the definition.
#pragma once

#include <span>
#include <string_view>

namespace penstock::cluster {

struct ShippedFile {
  std::string_view name;  // "a100-80"
  std::string_view text;
};
// Ascending by name.
std::span<const ShippedFile> ShippedFiles();

}  // namespace penstock::cluster
