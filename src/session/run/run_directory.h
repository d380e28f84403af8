// src/session/run/run_directory.h
//
// The directory of a run, and what may be done with one that is there already: nothing of the user's is ever
// overwritten unasked. Files: src/report/run_files.h, and
//   run.json      what is computed (settings without the layout), to recognise the run
//   config.toml   the resolved configuration of the last start
//   lock          held while a training looks at the directory or writes here
//   checkpoints/  checkpoint/checkpoint.h
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "session/settings.h"

namespace penstock::session {

enum class RunStart {
  fresh,     // nothing there, or what was there has no checkpoint yet
  resume,    // from `checkpoint`
  complete,  // all steps are done
};

inline constexpr const char* kCheckpointsFolder = "checkpoints";

// Where the checkpoints are that a user means by `path`: of a run directory its checkpoints/, else `path` itself.
std::string CheckpointsOf(const std::string& path);

struct RunDirectory {
  std::string path;
  RunStart start = RunStart::fresh;
  std::string checkpoint;        // to read the state from; empty: initial state
  std::string start_checkpoint;  // absolute path, when the run does not start from initial weights
  int64_t first_step = 0;
  bool move_aside = false;         // what is there now, to begin anew
  std::vector<int64_t> damaged;    // saves (checkpoint::SaveOptions) that were passed over
  std::shared_ptr<void> lock;      // held from the look at a run that is there, else from OpenRunDirectory on
  std::vector<std::string> notes;  // for the user: what was skipped or moved aside
  std::string checkpoints() const { return path + "/" + kCheckpointsFolder; }
};

// Decides, changing nothing on disk but the lock of a run that is there: from here on no other training changes it.
// UserError when the directory holds something else, or another computation, and run.overwrite is off, or when another
// training has it. WorldError where there are no locks, or a checkpoint cannot be read that may be whole.
RunDirectory InspectRunDirectory(const LoadedSettings& settings, const std::string& model_fingerprint);

// Creates it (moving an old one aside if so decided) and writes run.json and config.toml. WorldError when another
// training has begun there since it was looked at.
void OpenRunDirectory(RunDirectory& directory, const LoadedSettings& settings);

}  // namespace penstock::session
