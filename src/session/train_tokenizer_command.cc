#include "session/train_tokenizer_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "report/progress.h"
#include "session/command_line.h"

namespace penstock::session {
namespace {

constexpr int64_t kLargestVocabulary = int64_t{1} << 24;

std::string NextCommand(const TrainTokenizerCommand& command) {
  std::string next = "penstock tokenize";
  const data::TrainTokenizerOptions& train = command.train;
  for (const std::string& input : train.text.inputs) next += " " + ShellWord(input);
  const auto repeat = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values)
      if (value != "*") next += fmt::format(" {} {}", option, ShellWord(value));
  };
  repeat("--include", train.text.include);
  repeat("--exclude", train.text.exclude);
  if (train.jsonl_field != "text") next += " --jsonl-field " + ShellWord(train.jsonl_field);
  if (train.skip_malformed) next += " --skip-malformed";
  if (!train.document_separator.empty()) next += " --document-separator " + ShellWord(train.document_separator);
  return fmt::format("{} --tokenizer {} --out tokens", next, ShellWord(command.out));
}

data::TrainTokenizerOptions CheckOptions(const TrainTokenizerCommand& command) {
  if (command.out.empty()) throw UserError("--out is missing: the folder that the tokenizer is written to");
  if (command.vocabulary < 1 || command.vocabulary > kLargestVocabulary)
    throw UserError("--vocabulary {}: 257 to {}", command.vocabulary, kLargestVocabulary);
  if (command.min_frequency < 1) throw UserError("--min-frequency {}: at least 1", command.min_frequency);
  data::TrainTokenizerOptions options = command.train;
  options.threads = ThreadsOrCores(command.threads);
  RequireOneLineSeparator(options.document_separator);
  if (options.text.include.empty()) options.text.include = {"*"};
  options.text.out = command.out;
  if (options.bpe.special_tokens.empty()) options.bpe.special_tokens = {"<|endoftext|>"};
  options.bpe.vocabulary = static_cast<int32_t>(command.vocabulary);
  options.bpe.min_frequency = command.min_frequency;
  return options;
}

void PrintText(const TrainTokenizerCommand& command, const data::TrainTokenizerOptions& options,
               const data::TrainTokenizerResult& result, std::ostream& out) {
  const tokenizer::BpeTrainer::Result& trained = result.trained;
  out << fmt::format("{} documents, {} of text in {} files", result.documents, FormatBytes(result.text_bytes),
                     result.files - result.skipped_files);
  if (result.skipped_files > 0) out << fmt::format("; {} more are no text and were left out", result.skipped_files);
  if (result.malformed_lines > 0) out << fmt::format("; {} lines were malformed and left out", result.malformed_lines);
  out << fmt::format("\n{} distinct words, {} in all\n", trained.distinct_pieces, trained.pieces);
  out << fmt::format("vocabulary {}: {} special, 256 bytes, {} merges; the last one occurs {} times\n",
                     trained.vocabulary, options.bpe.special_tokens.size(), trained.merges, trained.last_frequency);
  if (trained.vocabulary < options.bpe.vocabulary)
    out << fmt::format(
        "that is less than the {} asked for: no further pair occurs {} times; take more text, or a "
        "smaller --min-frequency\n",
        options.bpe.vocabulary, options.bpe.min_frequency);
  out << fmt::format(
      "{}: counting {} ({}/s), merging {}\n", FormatSeconds(result.count_seconds + result.merge_seconds),
      FormatSeconds(result.count_seconds),
      FormatBytes(static_cast<int64_t>(static_cast<double>(result.input_bytes) / std::max(result.count_seconds, 1e-9))),
      FormatSeconds(result.merge_seconds));
  out << fmt::format("wrote {}/tokenizer.json\nnext: {}\n", command.out, NextCommand(command));
}

void PrintJson(const TrainTokenizerCommand& command, const data::TrainTokenizerOptions& options,
               const data::TrainTokenizerResult& result, std::ostream& out) {
  const nlohmann::ordered_json json = {{"out", command.out},
                                       {"files", result.files},
                                       {"skipped_files", result.skipped_files},
                                       {"input_bytes", result.input_bytes},
                                       {"text_bytes", result.text_bytes},
                                       {"documents", result.documents},
                                       {"empty_documents", result.empty_documents},
                                       {"malformed_lines", result.malformed_lines},
                                       {"distinct_words", result.trained.distinct_pieces},
                                       {"words", result.trained.pieces},
                                       {"vocabulary", result.trained.vocabulary},
                                       {"vocabulary_asked_for", options.bpe.vocabulary},
                                       {"merges", result.trained.merges},
                                       {"last_frequency", result.trained.last_frequency},
                                       {"count_seconds", result.count_seconds},
                                       {"merge_seconds", result.merge_seconds},
                                       {"next", NextCommand(command)}};
  out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace

int RunTrainTokenizer(const TrainTokenizerCommand& command, std::ostream& out, std::ostream& log) {
  const data::TrainTokenizerOptions options = CheckOptions(command);
  const std::string tokenizer = command.out + "/tokenizer.json", settings = command.out + "/tokenizer_config.json";
  FileSystem& files = FileSystem::Real();
  for (const std::string& path : {tokenizer, settings})
    if (!command.overwrite && files.Exists(path))
      throw UserError("'{}' exists already and is not overwritten; choose another --out, or --overwrite", path);
  const data::TrainTokenizerResult result =
      data::TrainTokenizer(options, {.out = &log, .terminal = report::IsTerminal(2)});
  files.CreateFolders(command.out);
  WriteFileAtomically(settings, result.trained.settings_json, command.overwrite);
  WriteFileAtomically(tokenizer, result.trained.tokenizer_json, command.overwrite);
  command.json ? PrintJson(command, options, result, out) : PrintText(command, options, result, out);
  return 0;
}

}  // namespace penstock::session
