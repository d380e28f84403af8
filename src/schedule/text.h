// src/schedule/text.h
//
// The text form of a schedule: prints, diffs, loads, is golden-tested; docs/schedule_format.md. One list per rank in
// program order, one action a line, step offset as a suffix, stream in the last column. A user can write one by hand.
// Parse(Print(s)) == s.
#pragma once

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace penstock::schedule {

std::string PrintSchedule(const Schedule& schedule);
// UserError with `source`:line, what is wrong and what would work. Never crashes on any input.
Schedule ParseSchedule(std::string_view text, std::string_view source = "schedule");

// Only compute, one line per rank: "rank 0: F0 F1 B0 ...", with the stage in front where a position has several: "2F0".
// A whole file: ParseSchedule gives the same order of compute back.
std::string PrintComputeCompact(const Schedule& schedule);

}  // namespace penstock::schedule
