#include "base/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace penstock {
namespace {

[[noreturn]] void Fail(std::string_view what, const std::string& path, int error) {
  const std::string reason = std::error_code(error, std::generic_category()).message();
  if (error == ENOENT || error == ENOTDIR || error == EISDIR || error == ENAMETOOLONG || error == ELOOP)
    throw UserError("cannot {} '{}': {}", what, path, reason);
  throw WorldError(fmt::format("cannot {} '{}': {}", what, path, reason));
}

[[noreturn]] void RefuseOverwrite(const std::string& path) {
  throw UserError("'{}' exists already and is not overwritten; choose another path or remove it", path);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int OpenRetrying(const std::string& path, int flags) {
  int fd;
  do fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  while (fd < 0 && errno == EINTR);
  return fd;
}

class RealWritableFile : public WritableFile {
 public:
  RealWritableFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  void Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) Fail("write", path_, errno);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

  void Sync() override {
    if (::fsync(fd_.get()) != 0) Fail("sync", path_, errno);
  }

  void Close() override {
    // On Linux the descriptor is gone even when close reports an error, so it is never closed twice.
    const int fd = fd_.Release();
    if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) Fail("close", path_, errno);
  }

 private:
  Descriptor fd_;
  std::string path_;
};

class RealReadableFile : public ReadableFile {
 public:
  RealReadableFile(int fd, std::string path, int64_t size) : fd_(fd), path_(std::move(path)), size_(size) {}

  int64_t size() const override { return size_; }

  void ReadAt(int64_t offset, std::span<char> out) const override {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) Fail("read", path_, errno);
      if (n == 0)
        throw WorldError(fmt::format("cannot read '{}': it ends {} bytes early, at {}", path_, out.size(), offset));
      out = out.subspan(static_cast<size_t>(n));
      offset += n;
    }
  }

 private:
  Descriptor fd_;
  std::string path_;
  int64_t size_;
};

class RealFileSystem : public FileSystem {
 public:
  std::unique_ptr<WritableFile> Create(const std::string& path) override {
    const int fd = OpenRetrying(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (fd < 0) Fail("create", path, errno);
    return std::make_unique<RealWritableFile>(fd, path);
  }

  std::unique_ptr<ReadableFile> Open(const std::string& path) override {
    // Not to wait for somebody who writes into a pipe of that name.
    Descriptor fd(OpenRetrying(path, O_RDONLY | O_NONBLOCK));
    if (fd.get() < 0) Fail("open", path, errno);
    struct stat status;
    if (::fstat(fd.get(), &status) != 0) Fail("open", path, errno);
    if (S_ISDIR(status.st_mode)) Fail("open", path, EISDIR);
    if (S_ISFIFO(status.st_mode)) throw UserError("cannot open '{}': it is a pipe; a file is needed", path);
    return std::make_unique<RealReadableFile>(fd.Release(), path, status.st_size);
  }

  bool Exists(const std::string& path) override {
    struct stat status;
    if (::lstat(path.c_str(), &status) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) Fail("look at", path, errno);
    return false;
  }

  void Rename(const std::string& from, const std::string& to, bool overwrite) override {
    if (!overwrite) {
      if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
      if (errno == EEXIST) RefuseOverwrite(to);
      if (errno != EINVAL && errno != ENOSYS) Fail("rename to", to, errno);
      if (Exists(to)) RefuseOverwrite(to);  // a file system without the atomic form
    }
    if (::rename(from.c_str(), to.c_str()) != 0) Fail("rename to", to, errno);
  }

  void Remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) Fail("remove", path, errno);
  }

  void RemoveAll(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) Fail("remove", path, error.value());
  }

  std::vector<std::string> List(const std::string& path) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator entries(path, error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
      names.push_back(entries->path().filename().string());
    if (error && error.value() != ENOENT) Fail("list", path, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  void SyncFolder(const std::string& path) override {
    const Descriptor fd(OpenRetrying(path, O_RDONLY | O_DIRECTORY));
    if (fd.get() < 0) Fail("open folder", path, errno);
    // Some file systems refuse to sync a folder (EINVAL); their renames are as durable as they get.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) Fail("sync folder", path, errno);
  }

  bool CreateFolder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) == 0) return true;
    const int error = errno;
    // Whatever keeps it from being made (a file system that cannot be written says so first), it may be there.
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) Fail("create folder", path, error);
    if (!S_ISDIR(status.st_mode)) Fail("create folder", path, ENOTDIR);
    return false;
  }
};

}  // namespace

void FileSystem::CreateFolders(const std::string& path) {
  std::vector<std::string> missing;
  std::filesystem::path at = path;
  for (; at.has_relative_path() && !Exists(at.string()); at = at.parent_path()) missing.push_back(at.string());
  if (missing.empty()) missing.push_back(path);  // there, if it is a folder
  for (auto folder = missing.rbegin(); folder != missing.rend(); ++folder)
    if (CreateFolder(*folder)) SyncFolder(FolderOf(*folder));
}

FileSystem& FileSystem::Real() {
  static RealFileSystem files;
  return files;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string ReadFile(const std::string& path, FileSystem& files) {
  const std::unique_ptr<ReadableFile> file = files.Open(path);
  std::string bytes(static_cast<size_t>(file->size()), '\0');
  file->ReadAt(0, bytes);
  return bytes;
}

AtomicFile::AtomicFile(std::string path, bool overwrite, FileSystem& files)
    : path_(std::move(path)), overwrite_(overwrite), files_(files) {
  if (!overwrite_ && files_.Exists(path_)) RefuseOverwrite(path_);
  // Unique among the processes and threads of this machine that write the same target.
  static std::atomic<uint64_t> counter{0};
  temporary_ = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), counter.fetch_add(1));
  file_ = files_.Create(temporary_);
}

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  try {
    file_.reset();
    files_.Remove(temporary_);
  } catch (const Error&) {  // what stopped the write is on its way already; a left-over temporary file harms nobody
  }
}

void AtomicFile::Commit() {
  PENSTOCK_CHECK(!temporary_.empty(), "'{}' is committed twice", path_);
  file_->Sync();
  file_->Close();
  files_.Rename(temporary_, path_, overwrite_);
  temporary_.clear();
  files_.SyncFolder(FolderOf(path_));
}

void WriteFileAtomically(const std::string& path, std::string_view bytes, bool overwrite, FileSystem& files) {
  AtomicFile file(path, overwrite, files);
  file.Append(bytes);
  file.Commit();
}

}  // namespace penstock
