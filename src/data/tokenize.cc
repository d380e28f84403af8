#include "data/tokenize.h"

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
    if (files_.Exists(In(kTokenizeSummary)) && DifferenceTo(In(kTokenizeSummary), job_, files_).empty() &&
        !options_.overwrite)
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
  std::string In(const std::string& name) const { return options_.out + "/" + name; }

  TokenizeResult AlreadyComplete() {
    const Json summary = Json::parse(ReadFile(In(kTokenizeSummary), files_));
    try {
      ReadSummary(summary);
    } catch (const nlohmann::json::exception& error) {
      throw UserError("'{}' cannot be read ({}); --overwrite starts anew", In(kTokenizeSummary), error.what());
    }
    result_.was_complete = true;
    files_.RemoveAll(folder_);
    return result_;
  }

  // Makes the folder one of this job, with or without parts of it.
  void Prepare() {
    const std::string journal = folder_ + "/journal.json";
    if (files_.Exists(journal) && !files_.Exists(In(kTokenizeSummary))) {
      const std::string difference = DifferenceTo(journal, job_, files_);
      if (difference.empty()) return;
      if (!options_.overwrite)
        throw UserError(
            "'{}' holds the beginning of another tokenization ({}); give the same command to finish that one, choose "
            "another --out, or --overwrite",
            options_.out, difference);
    }
    for (const char* name : {kTokenizeSummary, kTrainTokens, kValidationTokens, kTokenizerFolder}) {
      if (!files_.Exists(In(name))) continue;
      if (!options_.overwrite)
        throw UserError("'{}' exists already and is not overwritten; choose another --out, or --overwrite", In(name));
      files_.RemoveAll(In(name));
    }
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
    const int streams = options_.validation > 0 ? 2 : 1;
    for (int s = 0; s < streams; ++s) {
      const auto stream = static_cast<size_t>(s);
      TokenFileWriter writer(In(s == 0 ? kTrainTokens : kValidationTokens),
                             {.tokenizer = tokenizer_.name().substr(0, 4096),
                              .fingerprint = tokenizer_.Fingerprint(),
                              .vocabulary = tokenizer_.vocabulary(),
                              .end_of_document = tokenizer_.end_of_document(),
                              .tokens = parts.totals().tokens[stream],
                              .documents = parts.totals().documents[stream]},
                             /*overwrite=*/true, files_);
      parts.WriteTokens(s, writer, [&](int64_t bytes) { progress.Update(written += bytes); });
      progress.TickWhile([&] { writer.Commit(); });  // waits for the disk
    }
    const std::vector<tokenizer::TokenizerFile> own = tokenizer_.files();
    if (!own.empty()) files_.CreateFolders(In(kTokenizerFolder));
    for (const tokenizer::TokenizerFile& file : own)
      WriteFileAtomically(In(kTokenizerFolder) + "/" + file.name, file.content, /*overwrite=*/true, files_);
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
