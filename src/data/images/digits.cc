// The digits of scikit-learn: 1797 hand-written ones of 8 x 8 pixels from 0 to 16 (the test part of Alpaydin and
// Kaynak, "Optical recognition of handwritten digits", UCI machine learning repository, 1998). A line has 64 pixels and
// the label, with commas. Small real data that is there wherever scikit-learn is.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "data/images/byte_source.h"
#include "data/images/reader.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInPackages = "sklearn/datasets/data/digits.csv.gz";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// parent/python3.*/{site,dist}-packages; the names are sorted, so the answer is always the same.
std::string LookInLibrary(const fs::path& parent) {
  std::vector<std::string> versions;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().rfind("python3", 0) == 0) versions.push_back(it->path().string());
  std::sort(versions.begin(), versions.end());
  for (const std::string& version : versions)
    for (const char* packages : {"site-packages", "dist-packages"})
      if (const fs::path file = fs::path(version) / packages / kInPackages; IsFile(file)) return file.string();
  return "";
}

// Asks where the package is without importing it, which would take a second.
std::string AskPython() {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      ::popen("python3 -c 'import importlib.util as u; s = u.find_spec(\"sklearn\"); "
              "print(s.submodule_search_locations[0] if s else \"\", end=\"\")' 2>/dev/null",
              "r"),
      ::pclose);
  if (!pipe) return "";
  std::string answer;
  for (int c; (c = std::fgetc(pipe.get())) != EOF;) answer += static_cast<char>(c);
  if (answer.empty()) return "";
  const fs::path file = fs::path(answer).parent_path() / kInPackages;
  return IsFile(file) ? file.string() : "";
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

std::string FindDigits() {
  std::vector<fs::path> libraries;
  const std::string cache = Environment("PENSTOCK_CACHE"), home = Environment("HOME");
  if (const std::string venv = Environment("VIRTUAL_ENV"); !venv.empty()) libraries.push_back(fs::path(venv) / "lib");
  if (!cache.empty())
    libraries.push_back(fs::path(cache) / "venv-reference/lib");
  else if (!home.empty())
    libraries.push_back(fs::path(home) / ".cache/penstock/venv-reference/lib");
  if (!home.empty()) libraries.push_back(fs::path(home) / ".local/lib");
  libraries.insert(libraries.end(), {"/usr/lib", "/usr/local/lib"});
  for (const fs::path& library : libraries)
    if (std::string found = LookInLibrary(library); !found.empty()) return found;
  if (std::string found = AskPython(); !found.empty()) return found;
  throw UserError(
      "the digits of scikit-learn are not on this machine (looked for {} in $VIRTUAL_ENV, the reference packages and "
      "the system's Python, and asked python3); `make reference` or `pip install scikit-learn` brings them, or name "
      "the file",
      kInPackages);
}

namespace images {
namespace {

constexpr ImageShape kShape{1, 8, 8};
constexpr int32_t kFull = 16;

// The numbers of one line; the message says what is wrong with it.
void ParseLine(std::string_view line, const std::string& where, Pictures* out) {
  std::vector<int32_t> numbers;
  for (size_t at = 0; at <= line.size();) {
    const size_t comma = std::min(line.find(',', at), line.size());
    const std::string_view word = line.substr(at, comma - at);
    if (word.empty() || word.size() > 2 || word.find_first_not_of("0123456789") != std::string_view::npos)
      throw UserError("{}: value {} is not a number from 0 to {}", where, numbers.size() + 1, kFull);
    numbers.push_back(std::atoi(std::string(word).c_str()));
    at = comma + 1;
  }
  const auto pixels = static_cast<size_t>(kShape.elements());
  if (numbers.size() != pixels + 1)
    throw UserError("{} has {} values; 64 pixels and a label are 65", where, numbers.size());
  for (size_t k = 0; k < pixels; ++k) {
    if (numbers[k] > kFull)
      throw UserError("{}: pixel {} is {}; they go from 0 to {}", where, k + 1, numbers[k], kFull);
    out->pixels.push_back(static_cast<uint8_t>(numbers[k]));
  }
  if (numbers[pixels] > 9) throw UserError("{}: the label is {}; they go from 0 to 9", where, numbers[pixels]);
  out->labels.push_back(numbers[pixels]);
}

}  // namespace

bool RecognisesDigits(const Place& place) {
  const std::string name = place.path.substr(place.path.rfind('/') + 1);
  return !place.is_folder && (name == "digits.csv" || name == "digits.csv.gz");
}

ImageData ReadDigits(const Place& place, const ImageOptions& options) {
  if (place.is_folder)
    throw UserError("'{}' is a folder; the digits are one file, digits.csv.gz, or the word 'digits'", place.path);
  ByteSource source(place.path);
  std::vector<uint8_t> bytes;
  constexpr int64_t kMaxBytes = int64_t{16} << 20;  // sixty times the real file
  if (source.Append(kMaxBytes, &bytes) == kMaxBytes)
    throw UserError("'{}' has more than {} bytes of text; the digits have 264712", place.path, kMaxBytes);
  Budget budget(options.max_bytes);
  Pictures pictures;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    budget.Take(kShape.elements() + static_cast<int64_t>(sizeof(int32_t)), place.path);
    ParseLine(line, fmt::format("'{}', line {}", place.path, ++number), &pictures);
    at = end + 1;
  }
  if (number == 0) throw UserError("'{}' is empty", place.path);
  std::vector<std::string> classes;
  for (int digit = 0; digit < 10; ++digit) classes.push_back(std::to_string(digit));
  return {"digits",
          place.path,
          {{"all", std::make_shared<ImageList>(kShape, kFull, std::move(classes), std::move(pictures.pixels),
                                               std::move(pictures.labels))}}};
}

}  // namespace images
}  // namespace penstock::data
