// tests/paths.h
//
// Where the sources are. A function in a file of its own, not a macro of every test: a path in the flags would make
// every clone compile the tests anew instead of taking them from the compiler cache.
#pragma once

#include <string>

namespace penstock {

std::string SourceFolder();

}  // namespace penstock
