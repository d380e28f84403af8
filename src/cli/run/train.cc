#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/train_command.h"

namespace penstock::cli {
namespace {

Run Declare(CLI::App& app) {
  auto options = std::make_shared<session::TrainOptions>();
  app.add_option("config", options->config, "a configuration (TOML)")->required();
  app.add_option("--set", options->assignments, "override a key: section.key=value (may be repeated)");
  app.add_flag("--json", options->json, "a summary as one JSON document; progress goes to stderr");
  return [options] { return session::RunTrain(*options, std::cout, options->json ? std::cerr : std::cout); };
}

const RegisterCommand kRegister{
    {.name = "train", .summary = "verify, run and report a training run", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
