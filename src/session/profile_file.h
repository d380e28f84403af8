// src/session/profile_file.h
//
// Profiles (schedule/profile.h) as JSON: {"penstock_profile": 1, "machine": "...", "subjects": {NAME: [[size, seconds,
// count], ...]}}. Writing is atomic.
// Errors: UserError that names the file and what is wrong with it.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "schedule/profile.h"

namespace penstock::session {

std::string PrintProfile(const schedule::Profile& profile);
schedule::Profile ParseProfile(std::string_view text, const std::string& source);
// Several files with commas between them are merged.
schedule::Profile LoadProfiles(const std::string& files);

}  // namespace penstock::session
