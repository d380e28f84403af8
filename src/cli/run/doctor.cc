#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/run/doctor_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::DoctorOptions>();
  arguments.Flag("--calibrate", &options->calibrate,
                 "also measure what predictions rest on, and write it as the cluster this-machine");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunDoctor(*options, std::cout); };
}

const RegisterCommand kRegister{
    {.name = "doctor",
     .summary = "measures this machine and libtorch; says what would make runs wrong or slow",
     .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
