#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace penstock {
namespace {

[[noreturn]] void Fail(std::string_view what, const std::string& path, int error) {
  const std::string reason = std::error_code(error, std::generic_category()).message();
  if (error == ENOENT || error == ENOTDIR || error == EISDIR) throw UserError("cannot {} '{}': {}", what, path, reason);
  throw WorldError(fmt::format("cannot {} '{}': {}", what, path, reason));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  int fd;
  do fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) Fail("open", path, errno);
  struct stat status;
  int error = 0;
  if (::fstat(fd, &status) != 0) error = errno;
  if (error == 0 && S_ISDIR(status.st_mode)) error = EISDIR;
  if (error == 0 && status.st_size > 0) {
    void* const data = ::mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
      error = errno;
    else
      data_ = static_cast<const unsigned char*>(data);
  }
  ::close(fd);  // the mapping stays
  if (error != 0) Fail("map", path, error);
  size_ = static_cast<size_t>(status.st_size);
  changed_ = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<unsigned char*>(data_), size_);
}

void MappedFile::Forget(size_t begin, size_t end) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  begin = (begin + page - 1) / page * page;
  end = std::min(end, size_) / page * page;
  if (begin < end) ::madvise(const_cast<unsigned char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace penstock
