#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/exam_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::ExamOptions>();
  arguments.Positional("file", &options->file, "points (docs/exam.md); none: the published ones that come along");
  arguments.Assignments("--set", &options->assignments, "override a key of every point: section.key=value");
  arguments.Option("--only", &options->only, "points whose id contains this");
  arguments.Option("--bound", &options->bound,
                   "AVERAGE,WORST: errors in percent past which held-out points fail the exam");
  arguments.Flag("--json", &options->json, "one JSON document");
  arguments.Flag("--verbose", &options->verbose, "the command that reproduces each point, and its source");
  return [options] { return session::RunExam(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "exam", .summary = "the cost model against published runs: exit 1 past a bound", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
