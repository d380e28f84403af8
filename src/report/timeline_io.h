// src/report/timeline_io.h
//
// Timelines as files: JSON lines, the first with magic, version, title and number of ranks, then one event or memory
// event a line; fields at their defaults are left out. Times are seconds and read back to the same bits.
// Action::bytes and Action::extra_edges are indices into tables of the schedule and are not stored (Event::bytes is).
//
// Errors: UserError with file and line for what is no timeline; those of base/file.h. Writing is atomic.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "schedule/timeline.h"

namespace penstock::report {

std::string PrintTimeline(const schedule::Timeline& timeline);
schedule::Timeline ParseTimeline(std::string_view text, std::string_view source = "timeline");

void SaveTimeline(const std::string& path, const schedule::Timeline& timeline, bool overwrite = true,
                  FileSystem& files = FileSystem::Real());
schedule::Timeline LoadTimeline(const std::string& path, FileSystem& files = FileSystem::Real());

std::string_view Name(schedule::Provenance provenance);

}  // namespace penstock::report
