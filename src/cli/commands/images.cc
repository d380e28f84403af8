#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/images_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto options = std::make_shared<session::ImagesOptions>();
  arguments.Positional("path", &options->path, "a file or folder with pictures, or the word 'digits'",
                       Arguments::kRequired);
  arguments.Option("--kind", &options->kind, "auto, mnist, cifar10, cifar100, digits, folder (of PNG files)");
  arguments.Choice("--labels", &options->labels, {"fine", "coarse"}, "of CIFAR-100");
  arguments.Option("--channels", &options->channels,
                   "of a folder: 1 (grey), 3 (red, green, blue), 0: as the files are");
  arguments.Option("--resize", &options->resize, "of a folder: HEIGHTxWIDTH in pixels");
  arguments.Option("--max-bytes", &options->max_bytes, "what the pictures may take in memory");
  arguments.Option("--show", &options->show, "draw so many pictures of each part with characters");
  arguments.Flag("--json", &options->json, "one JSON document");
  return [options] { return session::RunImages(*options, std::cout); };
}

const RegisterCommand kRegister{{.name = "images",
                                 .summary = "pictures to train on: kind, classes, shape, mean and deviation",
                                 .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
