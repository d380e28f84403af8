// src/session/images_command.h
//
// `penstock images`: what pictures are under a path - their kind, classes, shape, and the mean and standard deviation
// that normalisation needs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace penstock::session {

struct ImagesOptions {
  std::string path;             // a file, a folder, or "digits"
  std::string kind = "auto";    // or a kind of data::ImageKinds()
  std::string labels = "fine";  // of CIFAR-100
  int64_t channels = 0;         // of a folder: 0 (as the files are), 1 or 3
  std::string resize;           // HEIGHTxWIDTH, of a folder; empty: no
  std::string max_bytes = "4 GiB";
  int64_t show = 0;  // pictures of each part drawn with characters
  bool json = false;
};

// Exit code 0. UserError as data/images.h, and for an option that is wrong.
int RunImages(const ImagesOptions& options, std::ostream& out);

}  // namespace penstock::session
