#include "data/token_sources.h"

#include <charconv>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "data/tokenize.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const TokenFile> OpenIfThere(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error) ? std::make_shared<const TokenFile>(path) : nullptr;
}

void Open(TokenSource& source) {
  std::error_code error;
  if (!fs::exists(source.path, error))
    throw UserError("'{}' is not there; give a token file, or a folder that `penstock tokenize` wrote", source.path);
  if (!fs::is_directory(source.path, error)) {
    source.train = std::make_shared<const TokenFile>(source.path);
    return;
  }
  source.train = OpenIfThere(source.path + "/" + kTrainTokens);
  source.validation = OpenIfThere(source.path + "/" + kValidationTokens);
  if (source.train != nullptr) return;
  if (fs::exists(source.path + "/" + kTokenizeParts, error))
    throw UserError("'{}' holds the beginning of a tokenization; run `penstock tokenize` again to finish it",
                    source.path);
  throw UserError("the folder '{}' has no {}; `penstock tokenize TEXT --out {}` makes it", source.path, kTrainTokens,
                  source.path);
}

}  // namespace

TokenSource ParseTokenSource(std::string_view text) {
  TokenSource source;
  const size_t at = text.rfind('=');
  source.path = text.substr(0, at);
  if (at != std::string_view::npos) {
    const std::string_view number = text.substr(at + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), source.weight);
    if (error != std::errc() || end != number.data() + number.size() || !(source.weight > 0) ||
        !std::isfinite(source.weight))
      throw UserError("source '{}': '{}' is no weight; write PATH=WEIGHT with a number above 0", text, number);
  }
  if (source.path.empty()) throw UserError("source '{}' has no path; write PATH or PATH=WEIGHT", text);
  return source;
}

std::vector<TokenSource> OpenTokenSources(const std::vector<std::string>& texts) {
  std::vector<TokenSource> sources;
  for (const std::string& text : texts) {
    sources.push_back(ParseTokenSource(text));
    Open(sources.back());
    const TokenFileInfo& first = sources.front().train->info();
    for (const auto& file : {sources.back().train, sources.back().validation}) {
      if (file == nullptr) continue;
      const TokenFileInfo& info = file->info();
      if (info.fingerprint != first.fingerprint || info.vocabulary != first.vocabulary)
        throw UserError(
            "'{}' was made with the tokenizer '{}' ({} ids) and '{}' with '{}' ({} ids), which is not the same one; "
            "make "
            "both with one tokenizer",
            sources.front().train->path(), first.tokenizer, first.vocabulary, file->path(), info.tokenizer,
            info.vocabulary);
    }
  }
  return sources;
}

std::shared_ptr<const tokenizer::Tokenizer> TokenizerOf(const std::vector<TokenSource>& sources) {
  const TokenFileInfo& info = sources.front().train->info();
  std::string from = info.tokenizer;
  std::error_code error;
  for (const TokenSource& source : sources)
    if (const std::string own = FolderOf(source.train->path()) + "/" + kTokenizerFolder; fs::is_directory(own, error)) {
      from = own;
      break;
    }
  if (from != "bytes" && !fs::exists(from, error))
    throw UserError("the tokenizer of '{}' is not there: neither {}/ beside it nor '{}'", sources.front().train->path(),
                    kTokenizerFolder, from);
  const auto tokenizer = tokenizer::LoadTokenizer(from);
  if (tokenizer->Fingerprint() != info.fingerprint)
    throw UserError("'{}' was made with another tokenizer than '{}' is now; make it again, or put the former one there",
                    sources.front().train->path(), from);
  return tokenizer;
}

}  // namespace penstock::data
