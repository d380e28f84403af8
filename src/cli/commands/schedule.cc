#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/schedule_command.h"

namespace penstock::cli {
namespace {

Run Declare(CLI::App& app) {
  auto options = std::make_shared<session::ScheduleOptions>();
  app.add_option("name", options->name, "a schedule of `penstock list`, or a file in the text form")->required();
  app.add_option("--ranks", options->ranks, "pipeline ranks P");
  app.add_option("--chunks", options->chunks, "stages per rank V (default: what the schedule needs at least)");
  app.add_option("--microbatches", options->micro_batches, "micro-batches M of the step");
  app.add_option("--route", options->route, "placement of the stages: linear, block, loop, v");
  app.add_option("--costs", options->costs, "times of forward, backward_input, backward_weight")->capture_default_str();
  app.add_option("--per", options->per, "what the costs are the times of: a whole rank's share, or one chunk (stage)")
      ->check(CLI::IsMember({"rank", "chunk"}))
      ->capture_default_str();
  app.add_option("--hop", options->hop, "latency of a message between two ranks")->capture_default_str();
  app.add_flag("--print", options->print, "print the order of every rank");
  app.add_option("--save", options->save, "write the schedule to this file, in the text form");
  app.add_option("--draw,--svg", options->draw, "draw the timeline into this file, as SVG");
  app.add_flag("--json", options->json, "one JSON document");
  return [options] { return session::RunSchedule(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "schedule", .summary = "time, memory and order of one schedule; print or save it", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
