#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/generate_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::GenerateOptions>();
  arguments.Positional("from", &options->from, "a run directory, or a checkpoint", Arguments::kRequired);
  arguments.Option("--prompt", &options->prompt, "what the text starts with");
  arguments.Option("--tokens", &options->tokens, "tokens to generate");
  arguments.Option("--temperature", &options->temperature, "0: the likeliest token");
  arguments.Option("--top-k", &options->top_k, "draw from the k likeliest tokens; 0: from all");
  arguments.Option("--seed", &options->seed, "of the random numbers");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunGenerate(*options, std::cout); };
}

const RegisterCommand kRegister{{.name = "generate", .summary = "text from a trained checkpoint", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
