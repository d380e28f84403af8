#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "session/run/checkpoint_command.h"
#include "session/run/convert_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  struct Options {
    std::string action;
    session::CheckpointCommandOptions checkpoint;
    session::ConvertCommandOptions convert;
  };
  auto options = std::make_shared<Options>();
  arguments.Positional("action", &options->action, "inspect, verify or convert", Arguments::kRequired);
  arguments.Positional("path", &options->checkpoint.path,
                       "a checkpoint, a directory of checkpoints, or a run directory; convert: also a Hugging Face "
                       "model folder",
                       Arguments::kRequired);
  arguments.Positional("to", &options->convert.to, "convert: the folder to write");
  arguments.Option("--dtype", &options->convert.dtype,
                   "convert to Hugging Face: fp32, bf16, fp16 or fp64 (default fp32)");
  arguments.Option("--max-shard", &options->convert.max_shard,
                   "convert to Hugging Face: largest file, as \"5 GiB\" (the default)");
  arguments.Option("--tokenizer", &options->convert.tokenizer, "convert: this one instead of the one that is there");
  arguments.Option("--tensor", &options->checkpoint.tensor, "inspect: the values of this one");
  arguments.Flag("--json", &options->checkpoint.json, "one JSON document");
  return [options] {
    if (options->action == "inspect") return session::RunInspectCheckpoint(options->checkpoint, std::cout);
    if (options->action == "verify") return session::RunVerifyCheckpoint(options->checkpoint, std::cout);
    if (options->action == "convert") {
      options->convert.from = options->checkpoint.path;
      return session::RunConvertCheckpoint(options->convert, std::cout);
    }
    throw UserError("checkpoint: there is no action '{}'{}", options->action,
                    DidYouMean(options->action, {"inspect", "verify", "convert"}));
  };
}

const RegisterCommand kRegister{{.name = "checkpoint",
                                 .summary = "what is in a checkpoint, whether it is whole; to and from Hugging Face",
                                 .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
