// src/cluster/library/shipped.h
//
// The files clusters/*.toml, ascending by path.
#pragma once

#include <span>

#include "base/shipped_file.h"

namespace penstock::cluster {

std::span<const ShippedFile> ShippedFiles();

}  // namespace penstock::cluster
