#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/schedule_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::ScheduleOptions>();
  arguments.Positional("name", &options->name, "a schedule of `penstock list`, or a file in the text form",
                       Arguments::kRequired);
  arguments.Option("--ranks", &options->ranks, "pipeline ranks P");
  arguments.Option("--chunks", &options->chunks, "stages per rank V (default: what the schedule needs at least)");
  arguments.Option("--microbatches", &options->micro_batches, "micro-batches M of the step");
  arguments.Option("--route", &options->route, "placement of the stages: linear, block, loop, v");
  arguments.Option("--costs", &options->costs, "times of forward, backward_input, backward_weight");
  arguments.Choice("--per", &options->per, {"rank", "chunk"},
                   "what the costs are the times of: a whole rank's share, or one chunk (stage)");
  arguments.Option("--hop", &options->hop, "latency of a message between two ranks");
  arguments.Flag("--print", &options->print, "print the order of every rank");
  arguments.Option("--save", &options->save, "write the schedule to this file, in the text form");
  arguments.Option("--draw,--svg", &options->draw, "draw the timeline into this file, as SVG");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunSchedule(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "schedule", .summary = "time, memory and order of one schedule; print or save it", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
