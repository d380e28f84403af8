// tests/session/run/tiny_run.h
//
// A small training run on a text file, in a folder that goes with it.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/temporary_directory.h"
#include "session/run/train_command.h"
#include "session/settings.h"

namespace penstock {

class TinyRun {
 public:
  explicit TinyRun(const std::vector<std::string>& more = {}) {
    at::set_num_threads(1);
    setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1);  // no profile of this machine
    std::string text;
    for (int i = 0; i < 120; ++i)
      text += fmt::format("line {} of the text, which is caf\xC3\xA9 number {}\n", i, i * i % 17);
    WriteFileAtomically(text_path(), text);
    WriteFileAtomically(folder_ / "tiny.toml", R"(
      [train]
      steps = 4
      batch = 4
      micro_batch = 2
      [model]
      layers = 2
      hidden = 32
      heads = 4
      [optimizer]
      lr = 0.01
      [data]
      source = "text"
      sequence = 16
    )");
    assignments_ = more;
    assignments_.push_back("data.path='" + text_path() + "'");
    assignments_.push_back("run.dir='" + path() + "'");
    Train();
  }

  // Starts, or goes on.
  void Train(const std::vector<std::string>& more = {}) {
    std::ostringstream out;
    session::TrainOptions options{.config = folder_ / "tiny.toml", .assignments = assignments_, .json = true};
    options.assignments.insert(options.assignments.end(), more.begin(), more.end());
    EXPECT_EQ(session::RunTrain(options, out, log_), 0) << log_.str();
  }

  // What Train(more) would load.
  session::LoadedSettings Settings(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> assignments = assignments_;
    assignments.insert(assignments.end(), more.begin(), more.end());
    return session::LoadedSettings(folder_ / "tiny.toml", assignments);
  }

  std::string path() const { return folder_ / "run"; }
  std::string text_path() const { return folder_ / "text.txt"; }
  std::string folder() const { return folder_.path(); }
  std::string log() const { return log_.str(); }

 private:
  checkpoint::TemporaryDirectory folder_;
  std::vector<std::string> assignments_;
  std::ostringstream log_;
};

}  // namespace penstock
