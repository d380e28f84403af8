#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/emulate_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::EmulateCommandOptions>();
  arguments.Positional("config", &options->config, "a configuration (*.toml)", Arguments::kRequired);
  arguments.Assignments("--set", &options->assignments, "override a key of the configuration: section.key=value");
  arguments.Option("--seconds", &options->seconds, "how long the emulation of a step should take");
  arguments.Option("--out", &options->out, "keep schedule, timelines, trace and report.html in this directory");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunEmulate(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "emulate",
     .summary = "the plan on rank threads that sleep as long as each action is priced, against its simulation",
     .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
