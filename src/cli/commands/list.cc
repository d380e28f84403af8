#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/catalog.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::ListOptions>();
  arguments.Positional("section", &options->section, "only this section (schedules, operators, ...)");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunList(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "list", .summary = "everything that is registered, with its source", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
