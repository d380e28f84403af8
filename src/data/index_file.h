// src/data/index_file.h
//
// Numbers that were expensive to find, kept in a file beside what they were found in, for the next start.
//
// They hold for one key; a file of another key, a damaged one or one of another version counts as not there. Where the
// folder cannot be written the numbers are kept in memory alone, with a warning. One process builds them: others wait
// and say for whom, at least every two seconds. Threads: Open from any; the result is immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/work_progress.h"

namespace penstock::data {

class IndexFile {
 public:
  // `build` is called when there is no valid file at `path`. Its exceptions pass.
  static std::shared_ptr<const IndexFile> Open(const std::string& path, Hash128 key, const ProgressSink& sink,
                                               const std::function<std::vector<int64_t>()>& build);

  std::span<const int64_t> values() const { return values_; }
  bool from_file() const { return map_ != nullptr; }  // it was there before

 private:
  std::unique_ptr<MappedFile> map_;
  std::vector<int64_t> own_;
  std::span<const int64_t> values_;
};

}  // namespace penstock::data
