// The Python standard library as a corpus: real text that is there on every machine that can set Penstock up.
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "data/corpus.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

// 11 for "python3.11", -1 for other names.
int MinorVersion(const std::string& name) {
  constexpr std::string_view kPrefix = "python3.";
  if (name.rfind(kPrefix, 0) != 0) return -1;
  const std::string digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoi(digits);
}

// Are the sources there, and not only a folder of installed packages?
bool HasSources(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "os.py", error) && fs::is_regular_file(folder / "argparse.py", error);
}

std::string NewestIn(const std::string& parent) {
  std::string best;
  int newest = -1;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const int minor = MinorVersion(it->path().filename().string());
    if (minor <= newest || !HasSources(it->path())) continue;
    newest = minor;
    best = it->path().string();
  }
  return best;
}

std::string AskPython() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen("python3 -c 'import os; print(os.path.dirname(os.__file__), end=\"\")' 2>/dev/null", "r"), ::pclose);
  if (!pipe) return "";
  std::string answer;
  for (int c; (c = std::fgetc(pipe.get())) != EOF;) answer += static_cast<char>(c);
  return !answer.empty() && HasSources(answer) ? answer : "";
}

}  // namespace

std::string FindPythonLibrary() {
  for (const char* parent : {"/usr/lib", "/usr/local/lib"})
    if (std::string found = NewestIn(parent); !found.empty()) return found;
  if (std::string found = AskPython(); !found.empty()) return found;
  throw UserError(
      "the sources of the Python standard library are not on this machine (looked in /usr/lib/python3.*, "
      "/usr/local/lib/python3.* and asked python3); install python3, or set data.source = 'text' and data.path");
}

Corpus LoadPythonLibrary(int64_t max_bytes) {
  CorpusOptions options;
  options.include = {"*.py"};
  // Tests hold wrong encodings on purpose; packages are not the library.
  options.exclude = {"site-packages/**", "dist-packages/**", "test/**", "**/test/**", "tests/**", "**/tests/**"};
  options.max_bytes = max_bytes;
  return LoadText(FindPythonLibrary(), options);
}

}  // namespace penstock::data
