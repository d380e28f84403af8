#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/generate_command.h"

namespace penstock::cli {
namespace {

Run Declare(CLI::App& app) {
  auto options = std::make_shared<session::GenerateOptions>();
  app.add_option("from", options->from, "a run directory, or a checkpoint")->required();
  app.add_option("--prompt", options->prompt, "what the text starts with")->capture_default_str();
  app.add_option("--tokens", options->tokens, "tokens to generate")->capture_default_str();
  app.add_option("--temperature", options->temperature, "0: the likeliest token")->capture_default_str();
  app.add_option("--top-k", options->top_k, "draw from the k likeliest tokens; 0: from all")->capture_default_str();
  app.add_option("--seed", options->seed, "of the random numbers")->capture_default_str();
  app.add_flag("--json", options->json, "one JSON document");
  return [options] { return session::RunGenerate(*options, std::cout); };
}

const RegisterCommand kRegister{{.name = "generate", .summary = "text from a trained checkpoint", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
