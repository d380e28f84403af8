#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/this_rank.h"

namespace penstock {

bool LockDescriptor(int descriptor, const std::string& path) {
  int result;
  do result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  throw WorldError(
      fmt::format("cannot lock '{}': {}", path, std::error_code(errno, std::generic_category()).message()));
}

std::unique_ptr<FileLock> FileLock::Try(const std::string& path, std::string* why) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    if (why != nullptr) *why = std::error_code(errno, std::generic_category()).message();
    return nullptr;
  }
  try {
    if (!LockDescriptor(fd, path)) {
      ::close(fd);
      return nullptr;
    }
  } catch (const WorldError& error) {
    ::close(fd);
    if (why == nullptr) throw;
    *why = error.what();
    return nullptr;
  }
  // The former holder may have removed the file between open and flock: then this is a lock on nothing.
  struct stat here, there;
  if (::fstat(fd, &here) != 0 || ::stat(path.c_str(), &there) != 0 || here.st_ino != there.st_ino) {
    ::close(fd);
    return nullptr;
  }
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::string text = fmt::format("process {} on {}", ::getpid(), host.data());
  if (ThisRank() >= 0) text += fmt::format(", rank {}", ThisRank());
  text += "\n";
  // For people only: a name that is not written harms nothing.
  if (::ftruncate(fd, 0) != 0 || ::write(fd, text.data(), text.size()) < 0) errno = 0;
  return std::unique_ptr<FileLock>(new FileLock(fd, path));
}

std::string FileLock::Holder(const std::string& path) {
  std::string line;
  std::ifstream in(path);
  std::getline(in, line);
  return line.empty() || line.size() > 400 ? "another process" : line;
}

FileLock::~FileLock() {
  ::unlink(path_.c_str());  // while it is held
  ::close(fd_);
}

}  // namespace penstock
