// src/session/run/run_readme.h
//
// README.txt of a run directory: what lies there and what can be done with it, for whoever finds it later.
#pragma once

#include <string>

#include "session/settings.h"

namespace penstock::session {

inline constexpr const char* kRunReadme = "README.txt";

// `directory` as the run was given it, `started_in` the absolute working directory of the start.
std::string RunReadme(const LoadedSettings& settings, const std::string& directory, const std::string& started_in,
                      bool has_tokenizer_files);

}  // namespace penstock::session
