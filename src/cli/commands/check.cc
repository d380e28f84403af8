#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/check_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::CheckOptions>();
  arguments.Positional("target", &options->target, "a configuration (*.toml) or a schedule file", Arguments::kRequired);
  arguments.Assignments("--set", &options->assignments, "override a key of the configuration: section.key=value");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunCheck(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "check", .summary = "the verifier: exit 2 and the reason when it fails", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
