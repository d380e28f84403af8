#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/check_command.h"

namespace penstock::cli {
namespace {

Run Declare(CLI::App& app) {
  auto options = std::make_shared<session::ConfigOptions>();
  app.add_option("config", options->config, "print this configuration resolved; without it: all keys with defaults");
  app.add_option("--set", options->assignments, "override a key: section.key=value (may be repeated)");
  app.add_flag("--markdown", options->markdown, "the documentation of all keys (docs/config.md)");
  app.add_flag("--json", options->json, "one JSON document");
  return [options] { return session::RunConfig(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "config", .summary = "documents all settings, or resolves a configuration", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
