#include "data/index_file.h"

#include <bit>
#include <chrono>
#include <cstring>
#include <ostream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"

namespace penstock::data {
namespace {

static_assert(std::endian::native == std::endian::little, "values are mapped as they are in the file");

// The file: head, values, nothing else.
struct Head {
  char magic[8] = {'P', 'N', 'S', 'T', 'K', 'I', 'D', 'X'};
  uint64_t version = 1;
  uint64_t key_high = 0, key_low = 0;
  uint64_t count = 0;
  uint64_t hash_high = 0, hash_low = 0;  // of the values
  uint64_t reserved = 0;
};
static_assert(sizeof(Head) == 64);

Head MakeHead(Hash128 key, std::span<const int64_t> values) {
  const Hash128 hash = Hash(values.data(), values.size_bytes());
  Head head;
  head.key_high = key.high;
  head.key_low = key.low;
  head.count = values.size();
  head.hash_high = hash.high;
  head.hash_low = hash.low;
  return head;
}

// Null when it is not there or not this one.
std::unique_ptr<MappedFile> Map(const std::string& path, Hash128 key) {
  std::unique_ptr<MappedFile> map;
  try {
    if (!FileSystem::Real().Exists(path)) return nullptr;
    map = std::make_unique<MappedFile>(path);
  } catch (const Error&) {
    return nullptr;
  }
  const std::span<const unsigned char> bytes = map->bytes();
  if (bytes.size() < sizeof(Head) || bytes.size() % 8 != 0) return nullptr;
  const std::span<const int64_t> values(reinterpret_cast<const int64_t*>(bytes.data() + sizeof(Head)),
                                        (bytes.size() - sizeof(Head)) / 8);
  const Head wanted = MakeHead(key, values);
  return std::memcmp(bytes.data(), &wanted, sizeof(Head)) == 0 ? std::move(map) : nullptr;
}

// Waits until nobody else builds it. Null with `why` when there is no lock to be had: the folder cannot be written, or
// its file system has none.
std::unique_ptr<FileLock> WaitForTurn(const std::string& path, const ProgressSink& sink, std::string& why) {
  const std::string lock = path + ".lock";
  auto said = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  for (;;) {
    if (auto held = FileLock::Try(lock, &why); held != nullptr || !why.empty()) return held;
    if (const auto now = std::chrono::steady_clock::now();
        sink.out != nullptr && now - said >= std::chrono::seconds(1)) {
      *sink.out << fmt::format("waiting for {}, which builds '{}'\n", FileLock::Holder(lock), path) << std::flush;
      said = now;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

std::shared_ptr<const IndexFile> IndexFile::Open(const std::string& path, Hash128 key, const ProgressSink& sink,
                                                 const std::function<std::vector<int64_t>()>& build) {
  auto index = std::make_shared<IndexFile>();
  const auto use = [&] {
    index->values_ = {reinterpret_cast<const int64_t*>(index->map_->bytes().data() + sizeof(Head)),
                      (index->map_->bytes().size() - sizeof(Head)) / 8};
    return index;
  };
  index->map_ = Map(path, key);
  if (index->map_ != nullptr) return use();
  std::string no_lock;
  const auto lock = WaitForTurn(path, sink, no_lock);
  index->map_ = Map(path, key);  // by whom we waited for
  if (index->map_ != nullptr) return use();
  index->own_ = build();
  index->values_ = index->own_;
  try {
    const Head head = MakeHead(key, index->own_);
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof(Head));
    bytes.append(reinterpret_cast<const char*>(index->own_.data()), index->own_.size() * 8);
    WriteFileAtomically(path, bytes,
                        /*overwrite=*/true);  // also without a lock: whoever else builds it writes the same
    if (!no_lock.empty()) log::Warning("data: '{}' was built without asking who else builds it: {}", path, no_lock);
  } catch (const Error& error) {
    log::Warning("data: an index is built again at every start: {}", error.what());
  }
  return index;
}

}  // namespace penstock::data
