#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/report_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::ReportOptions>();
  arguments.Positional("directory", &options->directory, "directory of a run: its 'run.dir'", Arguments::kRequired);
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunReportCommand(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "report", .summary = "what a run did: loss, speed, bubble, waits, memory", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
