#include <filesystem>

#include "base/error.h"
#include "tokenizer/files/files.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKnown =
    "bytes; a tokenizer.json; a vocab.json beside its merges.txt; a SentencePiece .model; a folder with one of these";

std::shared_ptr<const Tokenizer> LoadFolder(const std::string& folder) {
  const auto has = [&](const char* name) { return fs::is_regular_file(folder + "/" + name); };
  const TokenizerSettings settings = ReadTokenizerSettings(folder);
  if (has("tokenizer.json")) return ReadTokenizerJson(folder + "/tokenizer.json", settings);
  if (has("vocab.json") && has("merges.txt"))
    return ReadGpt2Files(folder + "/vocab.json", folder + "/merges.txt", settings);
  if (has("encoder.json") && has("vocab.bpe"))
    return ReadGpt2Files(folder + "/encoder.json", folder + "/vocab.bpe", settings);
  for (const char* name : {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"})
    if (has(name)) return ReadSentencePiece(folder + "/" + name, settings);
  throw UserError("{} has no tokenizer; looked for: tokenizer.json, vocab.json with merges.txt, tokenizer.model",
                  folder);
}

std::shared_ptr<const Tokenizer> LoadFile(const std::string& path) {
  const fs::path file(path);
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  const TokenizerSettings settings = ReadTokenizerSettings(folder);
  const std::string name = file.filename().string();
  const auto beside = [&](const char* other) {
    const std::string there = folder + "/" + other;
    if (!fs::is_regular_file(there)) throw UserError("{} needs {} beside it", path, other);
    return there;
  };
  if (name == "vocab.json") return ReadGpt2Files(path, beside("merges.txt"), settings);
  if (name == "merges.txt") return ReadGpt2Files(beside("vocab.json"), path, settings);
  if (name == "encoder.json") return ReadGpt2Files(path, beside("vocab.bpe"), settings);
  if (name == "vocab.bpe") return ReadGpt2Files(beside("encoder.json"), path, settings);
  if (file.extension() == ".json") return ReadTokenizerJson(path, settings);
  if (file.extension() == ".model") return ReadSentencePiece(path, settings);
  throw UserError("{} is no tokenizer by its name; known: {}", path, kKnown);
}

}  // namespace

std::shared_ptr<const Tokenizer> LoadTokenizer(const std::string& name) {
  if (name == "bytes") return std::make_shared<ByteTokenizer>();
  if (fs::is_directory(name)) return LoadFolder(name);
  if (fs::exists(name)) return LoadFile(name);
  throw UserError("there is no tokenizer '{}'; known: {}", name, kKnown);
}

}  // namespace penstock::tokenizer
