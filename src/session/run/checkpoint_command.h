// src/session/run/checkpoint_command.h
//
// `penstock checkpoint inspect|verify PATH`: what is in a checkpoint (or in all of a directory or run), and whether
// every byte of it is what was written.
#pragma once

#include <iosfwd>
#include <string>

namespace penstock::session {

struct CheckpointCommandOptions {
  std::string path;    // a checkpoint, a directory of checkpoints, or a run directory
  std::string tensor;  // inspect: values of this one
  bool json = false;
};

// 0; UserError when there is no checkpoint, or it cannot be opened.
int RunInspectCheckpoint(const CheckpointCommandOptions& options, std::ostream& out);
// Reads and hashes everything. 0: all checkpoints there are whole; 1: some are not (each is named with the reason).
int RunVerifyCheckpoint(const CheckpointCommandOptions& options, std::ostream& out);

}  // namespace penstock::session
