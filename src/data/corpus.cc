#include "data/corpus.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "base/utf8.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

bool Matches(std::string_view pattern, std::string_view path) {
  if (pattern.empty()) return path.empty();
  if (pattern.front() == '*') {
    const bool any = pattern.substr(0, 2) == "**";
    const std::string_view rest = pattern.substr(any ? 2 : 1);
    for (size_t i = 0;; ++i) {
      if (Matches(rest, path.substr(i))) return true;
      if (i == path.size() || (path[i] == '/' && !any)) return false;
    }
  }
  if (path.empty()) return false;
  if (pattern.front() != path.front() && (pattern.front() != '?' || path.front() == '/')) return false;
  return Matches(pattern.substr(1), path.substr(1));
}

bool Wanted(const CorpusOptions& options, const std::string& path) {
  const auto matches = [&](const std::string& pattern) { return GlobMatches(pattern, path); };
  return std::any_of(options.include.begin(), options.include.end(), matches) &&
         std::none_of(options.exclude.begin(), options.exclude.end(), matches);
}

// A link to a folder that it lies in: following it would not end.
bool LeadsUp(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::canonical(link, error);
  for (fs::path above = link.parent_path(); !error; above = above.parent_path()) {
    const bool top = above.empty() || above == above.root_path();
    if (fs::canonical(above.empty() ? "." : above, error) == target) return true;
    if (top) return false;
  }
  return true;  // it leads nowhere
}

constexpr std::string_view kBinaryHint =
    "; narrow the files of the folder (data.include, for example [\"*.txt\"]), or name it in data.exclude";

std::string ReadText(const std::string& path, std::string_view hint) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) && std::filesystem::exists(path, error))
    throw UserError("'{}' is not a regular file; text is read from files and folders", path);
  std::string text = ReadFile(path);
  const std::string why = WhyNotText(text);
  if (!why.empty()) throw UserError("'{}' is not text: {}{}", path, why, hint);
  return text;
}

}  // namespace

int64_t TimeOfChange(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error).time_since_epoch();
  if (error) throw WorldError(fmt::format("cannot look at '{}': {}", path, error.message()));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

std::vector<FoundFile> FindFiles(const std::string& folder, const CorpusOptions& options) {
  std::vector<FoundFile> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::follow_directory_symlink, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string name = it->path().lexically_relative(folder).generic_string();
    std::error_code missing;  // a link that leads nowhere is no file
    if (it->is_directory(missing)) {
      // Not looking into an excluded folder spares walking through thousands of installed packages.
      const auto whole = [&](const std::string& pattern) { return pattern == name + "/**"; };
      if (std::any_of(options.exclude.begin(), options.exclude.end(), whole) ||
          (it->is_symlink(missing) && LeadsUp(it->path())))
        it.disable_recursion_pending();
      continue;
    }
    if (!it->is_regular_file(missing)) continue;
    if (!Wanted(options, name)) continue;
    const auto bytes = static_cast<int64_t>(it->file_size(error));
    if (error) break;
    if (bytes == 0 && !options.empty_files) continue;
    found.push_back({name, it->path().string(), bytes, TimeOfChange(it->path().string())});
  }
  if (error) throw WorldError(fmt::format("cannot list the folder '{}': {}", folder, error.message()));
  std::sort(found.begin(), found.end(), [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  return found;
}

bool GlobMatches(std::string_view pattern, std::string_view path) {
  if (pattern.find('/') == std::string_view::npos) path = path.substr(path.rfind('/') + 1);
  return Matches(pattern, path);
}

std::string WhyNotText(std::string_view bytes) {
  if (const size_t at = bytes.find('\0'); at != std::string_view::npos)
    return fmt::format("it has NUL bytes (the first at {})", at);
  size_t strange = 0;
  for (size_t i = 0; i < bytes.size();) {
    const size_t n = Utf8Length(bytes.substr(i, 4));
    const auto c = static_cast<unsigned char>(bytes[i]);
    const bool control = (c < 0x20 && (c < '\b' || c > '\r') && c != 0x1b) || c == 0x7f;
    strange += n == 0 || control;
    i += std::max<size_t>(n, 1);
  }
  if (strange * 10 <= bytes.size()) return "";
  return fmt::format("{} of its {} bytes are control characters or no UTF-8", strange, bytes.size());
}

Corpus LoadText(const std::string& path, const CorpusOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw UserError("the text '{}' is not there; give a text file, or a folder of them", path);
  Corpus corpus;
  if (!fs::is_directory(status)) {
    const std::string name = fs::path(path).filename().string();
    corpus.documents.push_back({name, ReadText(path, "; give a text file")});
    corpus.bytes = static_cast<int64_t>(corpus.documents[0].text.size());
    if (corpus.bytes > options.max_bytes)
      throw UserError("'{}' has {}, more than data.max_bytes allows ({}); raise it", path, FormatBytes(corpus.bytes),
                      FormatBytes(options.max_bytes));
    if (corpus.bytes == 0) throw UserError("the corpus '{}' is empty", path);
    return corpus;
  }
  const std::vector<FoundFile> found = FindFiles(path, options);
  for (size_t i = 0; i < found.size(); ++i) {
    if (corpus.bytes + found[i].bytes > options.max_bytes) {
      corpus.skipped_documents = static_cast<int64_t>(found.size() - i);
      break;
    }
    corpus.documents.push_back({found[i].name, ReadText(found[i].path, kBinaryHint)});
    corpus.bytes += static_cast<int64_t>(corpus.documents.back().text.size());
  }
  if (found.empty())
    throw UserError("the folder '{}' has no file with text in it that data.include names and data.exclude does not",
                    path);
  if (corpus.documents.empty())
    throw UserError("'{}' has {}, more than data.max_bytes allows ({}); raise it", found[0].path,
                    FormatBytes(found[0].bytes), FormatBytes(options.max_bytes));
  return corpus;
}

}  // namespace penstock::data
