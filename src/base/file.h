// src/base/file.h
//
// Files: the one seam to the file system. Everything that writes goes through a FileSystem, so that tests can inject
// faults (base/faulty_file_system.h).
//
// Errors: WorldError with the path, the operation and the reason of the system (permission, full disk, ...);
//         UserError for a path that is not there, is of the wrong kind, or would be overwritten without asking.
// Threads: FileSystem::Real() from any thread; a handle by one thread at a time (ReadAt: any).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// A file opened for writing from its start.
class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes, ignoring errors
  virtual void Append(std::string_view bytes) = 0;
  // The bytes are on stable storage when it returns.
  virtual void Sync() = 0;
  virtual void Close() = 0;
};

// A file opened for reading at any offset.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual int64_t size() const = 0;
  // Fills `out` from `offset`; WorldError when the file ends before that.
  virtual void ReadAt(int64_t offset, std::span<char> out) const = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual std::unique_ptr<WritableFile> Create(const std::string& path) = 0;  // truncates
  virtual std::unique_ptr<ReadableFile> Open(const std::string& path) = 0;
  virtual bool Exists(const std::string& path) = 0;
  // Atomic. With `overwrite` false: UserError when `to` exists, also when it appeared a moment ago.
  virtual void Rename(const std::string& from, const std::string& to, bool overwrite) = 0;
  virtual void Remove(const std::string& path) = 0;  // a file; not being there is no error
  // A folder and all that is in it, or a file; not being there is no error. Not atomic.
  virtual void RemoveAll(const std::string& path) = 0;
  // The names in a folder, ascending; none when it is not there.
  virtual std::vector<std::string> List(const std::string& path) = 0;
  // Makes creations and renames inside the folder durable.
  virtual void SyncFolder(const std::string& path) = 0;
  // In a folder that is there. False when it was there already; whoever creates it syncs the folder around it.
  virtual bool CreateFolder(const std::string& path) = 0;

  // With those around it; being there is no error. What it creates is durable when it returns.
  void CreateFolders(const std::string& path);

  static FileSystem& Real();
};

std::string ReadFile(const std::string& path, FileSystem& files = FileSystem::Real());

// Writes a file that is either complete or not there: bytes go to a temporary file beside the target, Commit makes
// them durable and renames. Destroyed without Commit, it removes the temporary file and the target is untouched.
class AtomicFile {
 public:
  // UserError when `path` exists and `overwrite` is false (checked now, and again by Commit).
  explicit AtomicFile(std::string path, bool overwrite = false, FileSystem& files = FileSystem::Real());
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Append(std::string_view bytes) { file_->Append(bytes); }
  void Commit();

 private:
  std::string path_;
  std::string temporary_;
  bool overwrite_;
  FileSystem& files_;
  std::unique_ptr<WritableFile> file_;
};

void WriteFileAtomically(const std::string& path, std::string_view bytes, bool overwrite = false,
                         FileSystem& files = FileSystem::Real());

// The folder of a path: "a/b" -> "a", "b" -> ".".
std::string FolderOf(const std::string& path);

}  // namespace penstock
