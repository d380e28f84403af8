#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/check_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::ConfigOptions>();
  arguments.Positional("config", &options->config,
                       "print this configuration resolved; without it: all keys with defaults");
  arguments.Assignments("--set", &options->assignments, "override a key: section.key=value");
  arguments.Flag("--markdown", &options->markdown, "the documentation of all keys (docs/config.md)");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunConfig(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "config", .summary = "documents all settings, or resolves a configuration", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
