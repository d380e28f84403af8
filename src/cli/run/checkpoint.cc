#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "session/run/checkpoint_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  struct Options {
    std::string action;
    session::CheckpointCommandOptions checkpoint;
  };
  auto options = std::make_shared<Options>();
  arguments.Positional("action", &options->action, "inspect or verify", Arguments::kRequired);
  arguments.Positional("path", &options->checkpoint.path,
                       "a checkpoint, a directory of checkpoints, or a run directory", Arguments::kRequired);
  arguments.Option("--tensor", &options->checkpoint.tensor, "inspect: the values of this one");
  arguments.Flag("--json", &options->checkpoint.json, "one JSON document");
  return [options] {
    if (options->action == "inspect") return session::RunInspectCheckpoint(options->checkpoint, std::cout);
    if (options->action == "verify") return session::RunVerifyCheckpoint(options->checkpoint, std::cout);
    throw UserError("checkpoint: there is no action '{}'{}", options->action,
                    DidYouMean(options->action, {"inspect", "verify"}));
  };
}

const RegisterCommand kRegister{
    {.name = "checkpoint", .summary = "what is in a checkpoint, and whether it is whole", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
