#include "base/faulty_file_system.h"

#include <filesystem>
#include <system_error>

namespace penstock {

class FaultyWritableFile : public WritableFile {
 public:
  FaultyWritableFile(FaultyFileSystem& files, std::unique_ptr<WritableFile> real, std::string path)
      : files_(files), real_(std::move(real)), path_(std::move(path)) {}

  void Append(std::string_view bytes) override {
    bool first = false;
    if (files_.Fails(&first)) {
      // Nothing is written after a crash; the failing operation itself may be half done.
      if (first)
        real_->Append(bytes.substr(0, static_cast<size_t>(static_cast<double>(bytes.size()) * files_.fault_.written)));
      files_.Throw(path_);
    }
    real_->Append(bytes);
  }
  void Sync() override {
    if (files_.Fails()) files_.Throw(path_);
    real_->Sync();
  }
  void Close() override {
    if (files_.Fails()) files_.Throw(path_);
    real_->Close();
  }

 private:
  FaultyFileSystem& files_;
  std::unique_ptr<WritableFile> real_;
  std::string path_;
};

bool FaultyFileSystem::Fails(bool* first) {
  std::lock_guard lock(mutex_);
  ++operations_;
  if (fault_.operation == 0) return false;
  if (first != nullptr) *first = operations_ == fault_.operation;
  return fault_.crash ? operations_ >= fault_.operation : operations_ == fault_.operation;
}

void FaultyFileSystem::Throw(const std::string& path) const {
  throw WorldError(fmt::format("cannot write '{}': {} (injected)", path,
                               std::error_code(fault_.error, std::generic_category()).message()));
}

namespace {

std::string Normal(const std::string& path) {
  const std::string normal = std::filesystem::path(path).lexically_normal().string();
  return normal.size() > 1 && normal.back() == '/' ? normal.substr(0, normal.size() - 1) : normal;
}

bool IsIn(const std::string& path, const std::string& folder) { return path.rfind(folder + "/", 0) == 0; }

}  // namespace

std::vector<std::string> FaultyFileSystem::NotDurable() const {
  const std::lock_guard lock(mutex_);
  return {not_durable_.begin(), not_durable_.end()};
}

void FaultyFileSystem::NoteName(const std::string& path) {
  const std::lock_guard lock(mutex_);
  not_durable_.insert(Normal(path));
}

void FaultyFileSystem::ForgetName(const std::string& path) {
  const std::lock_guard lock(mutex_);
  std::erase_if(not_durable_,
                [name = Normal(path)](const std::string& noted) { return noted == name || IsIn(noted, name); });
}

std::unique_ptr<WritableFile> FaultyFileSystem::Create(const std::string& path) {
  if (Fails()) Throw(path);
  const bool is_new = !real_.Exists(path);
  auto file = std::make_unique<FaultyWritableFile>(*this, real_.Create(path), path);
  if (is_new) NoteName(path);
  return file;
}

std::unique_ptr<ReadableFile> FaultyFileSystem::Open(const std::string& path) {
  const auto fail = [path, error = unreadable_.error] {
    throw WorldError(fmt::format("cannot read '{}': {} (injected)", path,
                                 std::error_code(error, std::generic_category()).message()));
  };
  if (unreadable_.word.empty() || path.find(unreadable_.word) == std::string::npos) return real_.Open(path);
  if (unreadable_.at_open) fail();
  struct Unreadable : ReadableFile {
    Unreadable(std::unique_ptr<ReadableFile> file, std::function<void()> fails) : file(std::move(file)), fails(fails) {}
    int64_t size() const override { return file->size(); }
    void ReadAt(int64_t, std::span<char>) const override { fails(); }
    std::unique_ptr<ReadableFile> file;
    std::function<void()> fails;
  };
  return std::make_unique<Unreadable>(real_.Open(path), fail);
}

void FaultyFileSystem::Rename(const std::string& from, const std::string& to, bool overwrite) {
  if (Fails()) Throw(to);
  real_.Rename(from, to, overwrite);
  const std::string source = Normal(from);
  std::vector<std::string> inside;  // goes along
  for (const std::string& noted : NotDurable())
    if (IsIn(noted, source)) inside.push_back(noted.substr(source.size()));
  ForgetName(from);
  ForgetName(to);
  NoteName(to);
  for (const std::string& name : inside) NoteName(to + name);
}

void FaultyFileSystem::Remove(const std::string& path) {
  if (Fails()) Throw(path);
  real_.Remove(path);
  ForgetName(path);
}

void FaultyFileSystem::RemoveAll(const std::string& path) {
  if (Fails()) Throw(path);
  real_.RemoveAll(path);
  ForgetName(path);
}

void FaultyFileSystem::SyncFolder(const std::string& path) {
  if (Fails()) Throw(path);
  real_.SyncFolder(path);
  const std::lock_guard lock(mutex_);
  std::erase_if(not_durable_,
                [folder = Normal(path)](const std::string& noted) { return Normal(FolderOf(noted)) == folder; });
}

bool FaultyFileSystem::CreateFolder(const std::string& path) {
  if (Fails()) Throw(path);
  const bool created = real_.CreateFolder(path);
  if (created) NoteName(path);
  return created;
}

}  // namespace penstock
