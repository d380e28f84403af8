#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/compare_command.h"

namespace penstock::cli {
namespace {

Run Declare(CLI::App& app) {
  auto options = std::make_shared<session::CompareOptions>();
  app.add_option("a", options->a, "a configuration (TOML)")->required();
  app.add_option("b", options->b, "the other configuration; or use --set-b, --oracle or --sweep");
  app.add_option("--set", options->assignments, "override a key in both: section.key=value (may be repeated)");
  app.add_option("--set-b", options->assignments_b, "override a key in the second only (may be repeated)");
  app.add_option("--oracle", options->oracle,
                 "compare with a reference: plain (single-rank loop) or whole (one backward over the batch)");
  app.add_flag("--sweep", options->sweep, "run the computation in all layouts and compare each with the plain loop");
  app.add_flag("--json", options->json, "one JSON document");
  return [options] { return session::RunCompare(*options, std::cout, std::cerr); };
}

const RegisterCommand kRegister{
    {.name = "compare", .summary = "run two plans; the first action and tensor that differ", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
