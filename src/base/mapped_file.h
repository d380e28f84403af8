// src/base/mapped_file.h
//
// A file read through memory: pages come from disk when they are looked at and leave again when memory is short, so a
// file may be larger than memory. Immutable; any thread.
//
// Errors: as base/file.h. A file that another program makes shorter while it is mapped ends the process (SIGBUS); what
// Penstock writes is renamed into place and never changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace penstock {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const unsigned char> bytes() const { return {data_, size_}; }
  int64_t size() const { return static_cast<int64_t>(size_); }
  const std::string& path() const { return path_; }
  // Of the last change, in nanoseconds since the epoch.
  int64_t changed() const { return changed_; }
  // The pages up to `end` were read for the last time: the process need not keep them.
  void Forget(size_t begin, size_t end) const;

 private:
  std::string path_;
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
  int64_t changed_ = 0;
};

}  // namespace penstock
