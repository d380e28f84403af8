#include "session/run/find_tokenizer.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace penstock::session {

void WriteTokenizer(const std::string& folder, const tokenizer::Tokenizer& tokenizer) {
  const auto files = tokenizer.files();
  if (files.empty()) return;
  const std::string into = folder + "/" + kTokenizerFolder;
  FileSystem::Real().CreateFolders(into);
  for (const tokenizer::TokenizerFile& file : files)
    WriteFileAtomically(into + "/" + file.name, file.content, /*overwrite=*/true);
}

std::string FindTokenizer(const std::string& checkpoint, const std::string& configured) {
  if (configured == "bytes") return configured;
  std::error_code ignored;
  std::string folder = std::filesystem::absolute(checkpoint, ignored).lexically_normal().string();
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  for (int up = 0; up < 3; ++up, folder = FolderOf(folder))  // step-N, checkpoints, the run
    if (std::filesystem::is_directory(folder + "/" + kTokenizerFolder, ignored)) return folder + "/" + kTokenizerFolder;
  return configured;
}

void RequireTokenizer(const checkpoint::TrainState& state, const std::string& checkpoint,
                      const tokenizer::Tokenizer& tokenizer) {
  const auto known = state.extra.find(kTokenizerFingerprint);
  if (known != state.extra.end() && known->second != kUnknownTokenizer && known->second != tokenizer.Fingerprint())
    throw UserError(
        "'{}' was trained with another tokenizer than '{}' is now: the same text has other tokens; use the one in the "
        "run's folder '{}'",
        checkpoint, tokenizer.name(), kTokenizerFolder);
}

std::shared_ptr<const tokenizer::Tokenizer> OpenTokenizer(const checkpoint::TrainState& state,
                                                          const std::string& checkpoint, const std::string& configured,
                                                          const std::string& given) {
  const auto known = state.extra.find(kTokenizerFingerprint);
  if (given.empty() && known != state.extra.end() && known->second == kUnknownTokenizer)
    throw UserError(
        "'{}' has weights that came without a tokenizer; --tokenizer names it, a file or a folder (bytes: one token "
        "for "
        "each byte)",
        checkpoint);
  const auto loaded = tokenizer::LoadTokenizer(given.empty() ? FindTokenizer(checkpoint, configured) : given);
  RequireTokenizer(state, checkpoint, *loaded);
  return loaded;
}

}  // namespace penstock::session
