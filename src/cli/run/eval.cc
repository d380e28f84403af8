#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/eval_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::EvalOptions>();
  arguments.Positional("from", &options->from, "a run directory, or a checkpoint", Arguments::kRequired);
  arguments.Option("--data", &options->data,
                   "a text file, a folder of them, or a file of tokens; without it, the run's own data");
  arguments.Option("--split", &options->split, "of the run's own data: validation (default) or train");
  arguments.Option("--tokenizer", &options->tokenizer, "instead of the run's");
  arguments.Option("--window", &options->window, "tokens the model sees at most; 0: data.sequence of the run");
  arguments.Option("--stride", &options->stride,
                   "tokens from one window to the next; a smaller one gives each token more before it; 0: the window");
  arguments.Option("--batch", &options->batch, "windows computed at once");
  arguments.Option("--max-windows", &options->max_windows, "the first so many alone; 0: all");
  arguments.Option("--threads", &options->threads, "of one operation; 0: chosen by the size of the model");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunEval(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "eval", .summary = "perplexity, bits per byte and accuracy of a trained model", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
