// src/report/appended_file.h
//
// A file that grows while a run goes on, and begins anew when the run is resumed: what is kept of the old one is
// written beside it first and takes its place at once, so that a crash leaves the one or the other.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace penstock::report {

// `path` with the contents `kept`, open for more.
std::unique_ptr<WritableFile> BeginAnew(const std::string& path, std::string_view kept,
                                        FileSystem& files = FileSystem::Real());

}  // namespace penstock::report
