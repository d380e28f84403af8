#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/compare_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::CompareOptions>();
  arguments.Positional("a", &options->a, "a configuration (TOML)", Arguments::kRequired);
  arguments.Positional("b", &options->b, "the other configuration; or use --set-b, --oracle or --sweep");
  arguments.Assignments("--set", &options->assignments, "override a key in both: section.key=value");
  arguments.Assignments("--set-b", &options->assignments_b, "override a key in the second only");
  arguments.Option("--oracle", &options->oracle,
                   "compare with a reference: plain (single-rank loop) or whole (one backward over the batch)");
  arguments.Flag("--sweep", &options->sweep, "run the computation in all layouts and compare each with the plain loop");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunCompare(*options, std::cout, std::cerr); };
}

const RegisterCommand kRegister{
    {.name = "compare", .summary = "run two plans; the first action and tensor that differ", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
