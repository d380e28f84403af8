#include "data/tokenize.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/hash.h"
#include "data/find_text.h"
#include "data/text_pieces.h"
#include "data/token_file.h"
#include "data/tokenize/encode_piece.h"
#include "data/tokenize/parts.h"
#include "data/tokenize/piece_work.h"

namespace penstock::data {
namespace {

using Json = nlohmann::ordered_json;

// What the result depends on: a run goes on only where all of it is equal.
Json DescribeJob(const TokenizeOptions& options, const tokenizer::Tokenizer& tokenizer,
                 const std::vector<TextFile>& inputs) {
  Hasher hasher;
  int64_t bytes = 0;
  for (const TextFile& file : inputs) {
    hasher.Update(file.name.size()).Update(file.name);
    hasher.Update(static_cast<uint64_t>(file.bytes)).Update(static_cast<uint64_t>(file.changed));
    bytes += file.bytes;
  }
  return {{"tokenizer", tokenizer.name()},
          {"tokenizer fingerprint", tokenizer.Fingerprint()},
          {"--include", options.include},
          {"--exclude", options.exclude},
          {"--jsonl-field", options.jsonl_field},
          {"--skip-malformed", options.skip_malformed},
          {"--document-separator", options.document_separator},
          {"--validation", options.validation},
          {"--validation-seed", options.validation_seed},
          {"number of files", inputs.size()},
          {"bytes of the files", bytes},
          {"names, sizes and times of the files", hasher.Digest().Hex()}};
}

// Empty when the record in the file is of this job, else what differs.
std::string DifferenceTo(const std::string& path, const Json& job, FileSystem& files) {
  try {
    const Json other = Json::parse(ReadFile(path, files)).at("job");
    for (const auto& [key, value] : job.items()) {
      if (key == "tokenizer") continue;  // a path; its fingerprint counts
      const auto at = other.find(key);
      if (at == other.end() || *at != value)
        return fmt::format("{}: {} there, {} now", key, at == other.end() ? "not known" : at->dump(), value.dump());
    }
    return "";
  } catch (const nlohmann::json::exception&) {
    return "its record cannot be read";
  }
}

class Run {
 public:
  Run(const TokenizeOptions& options, const tokenizer::Tokenizer& tokenizer, const ProgressSink& sink,
      FileSystem& files)
      : options_(options),
        tokenizer_(tokenizer),
        sink_(sink),
        files_(files),
        folder_(In(kTokenizeParts)),
        inputs_(FindTextFiles({options.inputs, options.include, options.exclude, options.out})),
        job_(DescribeJob(options, tokenizer, inputs_)),
        input_bytes_(job_.at("bytes of the files")) {}

  TokenizeResult Go() {
    files_.CreateFolders(options_.out);
    std::string why;
    const auto lock = FileLock::Try(In("tokenize.lock"), &why);
    if (lock == nullptr && why.empty())
      throw UserError("'{}' is being written by {}; wait for it, or choose another --out", options_.out,
                      FileLock::Holder(In("tokenize.lock")));
    if (lock == nullptr) throw WorldError(fmt::format("cannot write in '{}': {}", options_.out, why));
    if (!options_.overwrite && files_.Exists(In(kTokenizeSummary)) &&
        DifferenceTo(In(kTokenizeSummary), job_, files_).empty())
      return AlreadyComplete();
    Prepare();
    RemoveLeftovers();
    TokenizeParts parts(folder_, TokenWidth(tokenizer_.vocabulary()), files_);
    result_.resumed_bytes = parts.position().input_bytes;
    Encode(parts);
    if (parts.totals().documents[0] + parts.totals().documents[1] == 0)
      throw UserError("there is no text: {} files are no text, and {} documents are empty",
                      parts.position().skipped_files, parts.totals().empty_documents);
    Publish(parts);
    files_.RemoveAll(folder_);
    return result_;
  }

 private:
  static constexpr std::array<const char*, 2> kStreams = {kTrainTokens, kValidationTokens};

  std::string In(const std::string& name) const { return options_.out + "/" + name; }
  size_t Streams() const { return options_.validation > 0 ? 2 : 1; }

  TokenizeResult AlreadyComplete() {
    try {
      ReadSummary(Json::parse(ReadFile(In(kTokenizeSummary), files_)));
    } catch (const nlohmann::json::exception& error) {
      throw UserError("'{}' cannot be read ({}); --overwrite starts anew", In(kTokenizeSummary), error.what());
    }
    for (size_t s = 0; s < Streams(); ++s) CheckTokens(s);
    // What is not there is not overwritten.
    if (files_.List(In(kTokenizerFolder)).empty()) WriteTokenizer();
    result_.was_complete = true;
    files_.RemoveAll(folder_);
    return result_;
  }

  // Does the token file fit the summary? Its header and length are looked at, not its hashes.
  void CheckTokens(size_t stream) const {
    const std::string path = In(kStreams[stream]);
    std::string why;
    if (!files_.Exists(path)) {
      why = fmt::format("'{}' is not there", path);
    } else {
      try {
        const TokenFile file(path);
        if (file.tokens() != result_.tokens[stream] || file.documents() != result_.documents[stream] ||
            file.info().fingerprint != tokenizer_.Fingerprint())
          why = fmt::format("'{}' has {} tokens in {} documents of the tokenizer {}", path, file.tokens(),
                            file.documents(), file.info().fingerprint);
      } catch (const UserError& error) {
        why = error.what();
      }
    }
    if (!why.empty())
      throw UserError("{}, and '{}' says {} tokens in {} documents of {}; --overwrite makes all of it again", why,
                      In(kTokenizeSummary), result_.tokens[stream], result_.documents[stream],
                      tokenizer_.Fingerprint());
  }

  bool HasParts() const {
    const std::vector<std::string> names = files_.List(folder_);
    return std::any_of(names.begin(), names.end(),
                       [](const std::string& name) { return name.starts_with("part-") && name.ends_with(".json"); });
  }

  // Makes the folder one of this job, with or without parts of it. The results of another run stay until this one's are
  // there (Publish): the tokenizer may be nowhere else, and a run may end without a result.
  void Prepare() {
    const std::string journal = folder_ + "/journal.json";
    const bool begun = files_.Exists(journal), published = files_.Exists(In(kTokenizeSummary));
    if (begun) {
      const std::string difference = DifferenceTo(journal, job_, files_);
      // Without a summary, what is there may have been put there by this job.
      if (difference.empty() && (options_.overwrite || !published)) return;
      // Nothing is lost with one that has no part yet: it ended in an error, or early.
      if (!options_.overwrite && !published && HasParts())
        throw UserError(
            "'{}' holds the beginning of another tokenization ({}); give the same command to finish that one, choose "
            "another --out, or --overwrite",
            options_.out, difference);
    }
    if (!options_.overwrite)
      for (const char* name : {kTokenizeSummary, kTrainTokens, kValidationTokens, kTokenizerFolder})
        if (files_.Exists(In(name)))
          throw UserError("'{}' exists already and is not overwritten; choose another --out, or --overwrite", In(name));
    files_.RemoveAll(folder_);
    files_.CreateFolders(folder_);
    WriteFileAtomically(journal, Json{{"format", "penstock tokenize"}, {"version", 1}, {"job", job_}}.dump(2) + "\n",
                        false, files_);
  }

  // Temporary files of runs that were killed while they wrote a result.
  void RemoveLeftovers() {
    for (const std::string& name : files_.List(options_.out))
      for (const char* own : {kTokenizeSummary, kTrainTokens, kValidationTokens})
        if (name.starts_with(std::string(own) + ".") && name.ends_with(".tmp")) files_.Remove(In(name));
    for (const std::string& name : files_.List(In(kTokenizerFolder)))
      if (name.ends_with(".tmp")) files_.Remove(In(kTokenizerFolder) + "/" + name);
  }

  void Encode(TokenizeParts& parts) {
    const EncodeOptions encode{
        {options_.jsonl_field, options_.skip_malformed}, options_.validation, options_.validation_seed};
    TextPieces pieces(inputs_,
                      {.separator = options_.document_separator,
                       .cuts_at_lines = tokenizer_.CutsAtLines(),
                       .cuts_at_words = tokenizer_.CutsAtWords(),
                       .piece_bytes = static_cast<size_t>(options_.piece_bytes)},
                      parts.position());
    WorkProgress progress("tokenize", input_bytes_, WorkProgress::Unit::bytes, sink_, parts.position().input_bytes);
    LeftOutWarnings warnings("tokenize: ");
    WorkThroughPieces<EncodedPiece>(
        pieces, options_.threads, progress,
        [&](const TextPiece& piece) { return EncodePiece(piece, inputs_, encode, tokenizer_); },
        [&](const EncodedPiece& piece) {
          parts.Append(piece);
          warnings.Warn(piece.left_out.faults);
          progress.Update(piece.after.input_bytes);
          if (parts.open_bytes() >= options_.part_bytes) progress.TickWhile([&] { parts.CloseOne(); });
        });
    progress.TickWhile([&] { parts.CloseOne(); });
    skipped_files_ = pieces.where().skipped_files;
  }

  void Publish(TokenizeParts& parts) {
    WorkProgress progress("write", parts.bytes_of_files(), WorkProgress::Unit::bytes, sink_);
    int64_t written = 0;
    for (size_t stream = 0; stream < Streams(); ++stream) {
      TokenFileWriter writer(In(kStreams[stream]),
                             {.tokenizer = tokenizer_.name().substr(0, 4096),
                              .fingerprint = tokenizer_.Fingerprint(),
                              .vocabulary = tokenizer_.vocabulary(),
                              .end_of_document = tokenizer_.end_of_document(),
                              .tokens = parts.totals().tokens[stream],
                              .documents = parts.totals().documents[stream]},
                             /*overwrite=*/true, files_);
      parts.WriteTokens(static_cast<int>(stream), writer, [&](int64_t bytes) { progress.Update(written += bytes); });
      // Nothing may pass for complete that is of two runs.
      if (stream == 0) RemoveSummary();
      progress.TickWhile([&] { writer.Commit(); });  // waits for the disk
    }
    if (Streams() == 1) files_.Remove(In(kValidationTokens));
    WriteTokenizer();
    const TokenizeTotals& totals = parts.totals();
    Json summary = {{"format", "penstock tokenize"},
                    {"version", 1},
                    {"job", job_},
                    {"files", static_cast<int64_t>(inputs_.size())},
                    {"skipped_files", skipped_files_},
                    {"input_bytes", input_bytes_},
                    {"text_bytes", totals.text_bytes},
                    {"empty_documents", totals.empty_documents},
                    {"malformed_lines", totals.malformed_lines},
                    {"documents", totals.documents},
                    {"tokens", totals.tokens}};
    WriteFileAtomically(In(kTokenizeSummary), summary.dump(2) + "\n", /*overwrite=*/true, files_);
    ReadSummary(summary);
  }

  void RemoveSummary() {
    if (!files_.Exists(In(kTokenizeSummary))) return;
    files_.Remove(In(kTokenizeSummary));
    files_.SyncFolder(options_.out);
  }

  // The new files are there before those of another tokenizer go: at no time is there none.
  void WriteTokenizer() {
    const std::vector<tokenizer::TokenizerFile> own = tokenizer_.files();
    if (own.empty()) return files_.RemoveAll(In(kTokenizerFolder));
    files_.CreateFolders(In(kTokenizerFolder));
    for (const tokenizer::TokenizerFile& file : own)
      WriteFileAtomically(In(kTokenizerFolder) + "/" + file.name, file.content, /*overwrite=*/true, files_);
    for (const std::string& name : files_.List(In(kTokenizerFolder)))
      if (std::none_of(own.begin(), own.end(), [&](const auto& file) { return file.name == name; }))
        files_.RemoveAll(In(kTokenizerFolder) + "/" + name);
  }

  void ReadSummary(const Json& summary) {
    result_.documents = summary.at("documents");
    result_.tokens = summary.at("tokens");
    result_.files = summary.at("files");
    result_.skipped_files = summary.at("skipped_files");
    result_.input_bytes = summary.at("input_bytes");
    result_.text_bytes = summary.at("text_bytes");
    result_.empty_documents = summary.at("empty_documents");
    result_.malformed_lines = summary.at("malformed_lines");
  }

  const TokenizeOptions& options_;
  const tokenizer::Tokenizer& tokenizer_;
  const ProgressSink& sink_;
  FileSystem& files_;
  const std::string folder_;
  const std::vector<TextFile> inputs_;
  const Json job_;
  const int64_t input_bytes_;
  int64_t skipped_files_ = 0;
  TokenizeResult result_;
};

}  // namespace

TokenizeResult Tokenize(const TokenizeOptions& options, const tokenizer::Tokenizer& tokenizer,
                        const ProgressSink& progress, FileSystem& files) {
  return Run(options, tokenizer, progress, files).Go();
}

}  // namespace penstock::data
