// src/cli/command.h
//
// A sub-command. One file each: src/cli/commands/x.cc, or src/cli/run/x.cc when it needs libtorch (those are left out
// of a build without it). A file declares options and calls the session; what the command does is in src/session.
//
//   Run Declare(Arguments& arguments) {
//     auto options = std::make_shared<session::ScheduleOptions>();
//     arguments.Positional("name", &options->name, "a schedule, or a file", Arguments::kRequired);
//     return [options] { return session::RunSchedule(*options, std::cout); };
//   }
//   const RegisterCommand kRegister{{.name = "schedule", .summary = "...", .declare = &Declare}};
//
// Exit codes: 0 success, 1 the world failed, 2 the user's input is wrong (docs/errors.md). A run function returns 0 or
// throws penstock::Error, or returns the verdict of a command that is a test (check, compare, doctor).
// Every sub-command has --json, which writes one JSON document to stdout and nothing else there.
#pragma once

#include <functional>
#include <string>

#include "base/registry.h"
#include "cli/arguments.h"

namespace penstock::cli {

// Does the work after the options are read; the exit code.
using Run = std::function<int()>;

struct Command {
  static constexpr const char* kRegistryName = "sub-command";
  std::string name;
  std::string summary;
  std::function<Run(Arguments&)> declare;
};
using RegisterCommand = Register<Command>;

// The whole program: parses, runs, prints "penstock: error: ..." on stderr, returns the exit code. Never throws.
int Main(int argc, const char* const* argv, const std::string& version);

}  // namespace penstock::cli
