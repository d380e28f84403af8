// tests/reference.h
//
// The Python packages that tests compare with (scripts/reference.sh). A test that needs them begins with
//
//   PENSTOCK_NEEDS_REFERENCE();
//
// and is skipped, with the reason, where they are not installed.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace penstock {

// The interpreter that has them, or "".
inline std::string ReferencePython() {
  if (const char* own = std::getenv("PENSTOCK_REFERENCE_PYTHON"); own != nullptr && *own != '\0') return own;
  const char* cache = std::getenv("PENSTOCK_CACHE");
  const char* home = std::getenv("HOME");
  const std::string folder = cache != nullptr  ? std::string(cache)
                             : home != nullptr ? std::string(home) + "/.cache/penstock"
                                               : std::string();
  const std::string python = folder + "/venv-reference/bin/python3";
  return !folder.empty() && std::filesystem::exists(python) ? python : "";
}

// Runs a Python program (its text) with arguments; returns what it printed. Fails the test when it ends with an error.
inline std::string RunReference(const std::string& program, const std::string& arguments = "") {
  std::string file = testing::TempDir() + "penstock-reference-XXXXXX";
  const int descriptor = ::mkstemp(file.data());
  EXPECT_GE(descriptor, 0);
  std::ofstream(file) << program;
  const std::string command = "'" + ReferencePython() + "' '" + file + "' " + arguments + " 2>'" + file + ".err'";
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) out.append(buffer, n);
  const int status = ::pclose(pipe);
  if (status != 0) {
    std::ifstream err(file + ".err");
    ADD_FAILURE() << command << " ended with " << status << ":\n"
                  << std::string(std::istreambuf_iterator<char>(err), {});
  }
  std::filesystem::remove(file);
  std::filesystem::remove(file + ".err");
  return out;
}

}  // namespace penstock

#define PENSTOCK_NEEDS_REFERENCE()                                  \
  if (::penstock::ReferencePython().empty())                        \
  GTEST_SKIP() << "the reference packages are not installed (make " \
                  "reference)"
