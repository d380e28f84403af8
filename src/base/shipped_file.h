// src/base/shipped_file.h
//
// A file of the repository as it was when Penstock was built, compiled in (cmake/EmbedFolder.cmake).
#pragma once

#include <string_view>

namespace penstock {

struct ShippedFile {
  std::string_view path;  // in the repository: "clusters/a100-80.toml"
  std::string_view text;
};

}  // namespace penstock
