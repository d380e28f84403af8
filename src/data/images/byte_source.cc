#include "data/images/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/file.h"

namespace penstock::data::images {
namespace {

constexpr size_t kBlock = size_t{256} << 10;
constexpr int64_t kGrowth = int64_t{4} << 20;

}  // namespace

struct ByteSource::State {
  std::unique_ptr<ReadableFile> file;
  int64_t offset = 0;          // in the file, of what is read next
  std::vector<uint8_t> block;  // read, and from `begin` on not used yet
  size_t begin = 0;
  bool gzip = false;
  bool between_members = false;  // a gzip file may have several
  z_stream stream{};

  size_t left() const { return block.size() - begin; }
  const uint8_t* next() const { return block.data() + begin; }
  ~State() {
    if (gzip) inflateEnd(&stream);
  }
};

ByteSource::ByteSource(const std::string& path) : path_(path), state_(std::make_unique<State>()) {
  state_->file = FileSystem::Real().Open(path);
  if (!Fill() || state_->left() < 2 || state_->block[0] != 0x1f || state_->block[1] != 0x8b) return;
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&state_->stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  state_->gzip = true;
}

ByteSource::~ByteSource() = default;

// The next block once this one is used up; false where the file ends.
bool ByteSource::Fill() {
  State& s = *state_;
  if (s.left() > 0) return true;
  const int64_t n = std::min<int64_t>(static_cast<int64_t>(kBlock), s.file->size() - s.offset);
  s.block.resize(static_cast<size_t>(std::max<int64_t>(n, 0)));
  s.begin = 0;
  if (n <= 0) return false;
  s.file->ReadAt(s.offset, {reinterpret_cast<char*>(s.block.data()), s.block.size()});
  s.offset += n;
  return true;
}

size_t ByteSource::ReadPlain(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size() && Fill()) {
    const size_t n = std::min(out.size() - done, state_->left());
    std::memcpy(out.data() + done, state_->next(), n);
    state_->begin += n;
    done += n;
  }
  return done;
}

size_t ByteSource::ReadGzip(std::span<uint8_t> out) {
  State& s = *state_;
  size_t done = 0;
  while (done < out.size()) {
    if (!Fill()) {
      if (s.between_members) return done;
      throw UserError("'{}' is cut off: the compressed data does not end; get the file again", path_);
    }
    if (s.between_members) {
      if (*s.next() != 0x1f) throw UserError("'{}' has bytes behind the end of its gzip data", path_);
      if (inflateReset(&s.stream) != Z_OK) throw std::bad_alloc();
      s.between_members = false;
    }
    s.stream.next_in = const_cast<uint8_t*>(s.next());
    s.stream.avail_in = static_cast<uInt>(s.left());
    s.stream.next_out = out.data() + done;
    s.stream.avail_out = static_cast<uInt>(std::min<size_t>(out.size() - done, kBlock));
    const uInt room = s.stream.avail_out;
    const int code = inflate(&s.stream, Z_NO_FLUSH);
    s.begin = s.block.size() - s.stream.avail_in;
    done += room - s.stream.avail_out;
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code != Z_OK && code != Z_STREAM_END)
      throw UserError("'{}' is damaged: its gzip data does not decompress ({}); get the file again", path_,
                      s.stream.msg != nullptr ? s.stream.msg : "no reason given");
    s.between_members = code == Z_STREAM_END;
  }
  return done;
}

size_t ByteSource::Read(std::span<uint8_t> out) { return state_->gzip ? ReadGzip(out) : ReadPlain(out); }

int64_t ByteSource::Append(int64_t bytes, std::vector<uint8_t>* out) {
  int64_t done = 0;
  while (done < bytes) {
    const auto wanted = static_cast<size_t>(std::min(bytes - done, kGrowth));
    const size_t before = out->size();
    out->resize(before + wanted);
    const size_t n = Read(std::span(*out).subspan(before));
    out->resize(before + n);
    done += static_cast<int64_t>(n);
    if (n < wanted) break;
  }
  return done;
}

bool ByteSource::AtEnd() {
  if (!state_->gzip) return !Fill();
  uint8_t byte;
  return Read({&byte, 1}) == 0;
}

}  // namespace penstock::data::images
