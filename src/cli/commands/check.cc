#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/check_command.h"

namespace penstock::cli {
namespace {

Run Declare(CLI::App& app) {
  auto options = std::make_shared<session::CheckOptions>();
  app.add_option("target", options->target, "a configuration (*.toml) or a schedule file")->required();
  app.add_option("--set", options->assignments,
                 "override a key of the configuration: section.key=value (may be repeated)");
  app.add_flag("--json", options->json, "one JSON document");
  return [options] { return session::RunCheck(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "check", .summary = "the verifier: exit 2 and the reason when it fails", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
