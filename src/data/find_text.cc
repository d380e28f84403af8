#include "data/find_text.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

bool IsWithin(const fs::path& path, const fs::path& folder) {
  const std::string relative = path.lexically_relative(folder).generic_string();
  return !relative.empty() && relative != ".." && relative.rfind("../", 0) != 0;
}

}  // namespace

std::vector<TextFile> FindTextFiles(const TextInputs& inputs) {
  std::vector<TextFile> found;
  const fs::path out = inputs.out.empty() ? fs::path() : fs::weakly_canonical(inputs.out);
  for (const std::string& input : inputs.inputs) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (!fs::exists(status)) throw UserError("'{}' is not there; give text files, or folders with them", input);
    if (!fs::is_directory(status)) {
      if (!fs::is_regular_file(status))
        throw UserError("'{}' is not a regular file; text is read from files and folders", input);
      found.push_back({{fs::path(input).filename().string(), input, static_cast<int64_t>(fs::file_size(input)),
                        TimeOfChange(input)},
                       true});
      continue;
    }
    const size_t before = found.size();
    for (FoundFile& file :
         FindFiles(input, {.include = inputs.include, .exclude = inputs.exclude, .empty_files = true}))
      if (out.empty() || !IsWithin(fs::weakly_canonical(file.path), out)) found.push_back({std::move(file), false});
    if (found.size() == before)
      throw UserError("the folder '{}' has no file with text in it that --include names and --exclude does not", input);
  }
  if (std::all_of(found.begin(), found.end(), [](const TextFile& file) { return file.bytes == 0; }))
    throw UserError("there is no text: the files are empty");
  return found;
}

}  // namespace penstock::data
