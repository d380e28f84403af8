#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/train_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::TrainOptions>();
  arguments.Positional("config", &options->config, "a configuration (TOML)", Arguments::kRequired);
  arguments.Assignments("--set", &options->assignments, "override a key: section.key=value");
  arguments.Flag("--json", &options->json, "a summary as one JSON document; progress goes to stderr");
  return [options] { return session::RunTrain(*options, std::cout, options->json ? std::cerr : std::cout); };
}

const RegisterCommand kRegister{
    {.name = "train", .summary = "verify, run and report a training run", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
