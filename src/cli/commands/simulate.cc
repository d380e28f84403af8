#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/simulate_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::SimulateOptions>();
  arguments.Positional("config", &options->config, "a configuration (*.toml)", Arguments::kRequired);
  arguments.Assignments("--set", &options->assignments, "override a key of the configuration: section.key=value");
  arguments.Option("--out", &options->out, "keep schedule, timeline, trace and report.html in this directory");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunSimulate(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "simulate", .summary = "time and memory of a plan on a cluster, before it runs", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
