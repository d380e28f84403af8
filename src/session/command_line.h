// src/session/command_line.h
//
// What several commands do with the command line: theirs, and those that they print. Stateless; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::session {

// A word as a shell reads it: in quotes where it needs them.
std::string ShellWord(const std::string& word);

// The value of --threads: 0 is one per core. UserError beyond 1024.
int ThreadsOrCores(int64_t threads);

// UserError when the value of --document-separator is more than one line.
void RequireOneLineSeparator(const std::string& separator);

}  // namespace penstock::session
