#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/generate_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::GenerateOptions>();
  arguments.Positional("from", &options->from, "a run directory, or a checkpoint", Arguments::kRequired);
  arguments.Option("--prompt", &options->prompt, "what the text starts with; without it, the beginning of a document");
  arguments.Option("--prompt-file", &options->prompt_file, "a file with what the text starts with");
  arguments.Option("--tokens", &options->tokens, "tokens to generate");
  arguments.Option("--temperature", &options->temperature, "0: the likeliest token");
  arguments.Option("--top-k", &options->top_k, "draw from the k likeliest tokens; 0: from all");
  arguments.Option("--top-p", &options->top_p,
                   "draw from the smallest set of likeliest tokens with this much probability; 1: from all");
  arguments.Option("--samples", &options->samples, "texts to generate, each with random numbers of its own");
  arguments.Flag("--stop-at-end", &options->stop_at_end, "end where the model ends the document");
  arguments.Flag("--specials", &options->specials, "recognise special tokens written in the prompt");
  arguments.Option("--tokenizer", &options->tokenizer, "instead of the run's");
  arguments.Flag("--no-cache", &options->no_cache, "compute the whole text again for every token");
  arguments.Flag("--raw", &options->raw, "write bytes that are no UTF-8 as they are, not as U+FFFD");
  arguments.Option("--threads", &options->threads, "of one operation; 0: chosen by the size of the model");
  arguments.Option("--seed", &options->seed, "of the random numbers");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunGenerate(*options, std::cout); };
}

const RegisterCommand kRegister{{.name = "generate", .summary = "text from a trained checkpoint", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
