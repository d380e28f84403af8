#include "session/tokenize_command.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/units.h"
#include "report/progress.h"
#include "session/command_line.h"

namespace penstock::session {

int RunTokenize(const TokenizeCommand& command, std::ostream& out, std::ostream& log) {
  const auto start = std::chrono::steady_clock::now();
  data::TokenizeOptions options = command.tokenize;
  if (options.out.empty()) throw UserError("--out is missing: the folder that the token files are written to");
  if (!(options.validation >= 0 && options.validation < 1))
    throw UserError("--validation {}: a fraction of the documents, at least 0 and less than 1", options.validation);
  options.threads = ThreadsOrCores(command.threads);
  RequireOneLineSeparator(options.document_separator);
  if (options.include.empty()) options.include = {"*"};
  try {
    options.part_bytes = ParseBytes(command.part);
  } catch (const UserError& error) {
    throw UserError("--part: {}", error.what());
  }
  if (options.part_bytes < 1) throw UserError("--part: at least one byte");
  options.validation_seed = static_cast<uint64_t>(command.validation_seed);
  const auto tokenizer = tokenizer::LoadTokenizer(command.tokenizer);

  const data::TokenizeResult result =
      data::Tokenize(options, *tokenizer, {.out = &log, .terminal = report::IsTerminal(2)});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int64_t done = result.was_complete ? 0 : result.input_bytes - result.resumed_bytes;
  if (command.json) {
    nlohmann::ordered_json json = {{"out", options.out},
                                   {"complete_before", result.was_complete},
                                   {"files", result.files},
                                   {"skipped_files", result.skipped_files},
                                   {"input_bytes", result.input_bytes},
                                   {"resumed_bytes", result.resumed_bytes},
                                   {"text_bytes", result.text_bytes},
                                   {"empty_documents", result.empty_documents},
                                   {"malformed_lines", result.malformed_lines},
                                   {"train", {{"documents", result.documents[0]}, {"tokens", result.tokens[0]}}},
                                   {"validation", {{"documents", result.documents[1]}, {"tokens", result.tokens[1]}}},
                                   {"vocabulary", tokenizer->vocabulary()},
                                   {"seconds", seconds}};
    out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (result.was_complete) out << fmt::format("'{}' is complete already; --overwrite starts anew\n", options.out);
  const auto count = [](int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
  out << fmt::format("{}, {}", count(result.files - result.skipped_files, "file"), FormatBytes(result.input_bytes));
  if (result.skipped_files > 0) out << fmt::format("; {} more are no text and were left out", result.skipped_files);
  if (result.malformed_lines > 0)
    out << fmt::format("; malformed and left out: {}", count(result.malformed_lines, "line"));
  out << fmt::format("\n{}/{}: {}, {} ({:.2f} bytes of text each)\n", options.out, data::kTrainTokens,
                     count(result.documents[0], "document"), count(result.tokens[0], "token"),
                     static_cast<double>(result.text_bytes) /
                         static_cast<double>(std::max<int64_t>(result.tokens[0] + result.tokens[1], 1)));
  if (options.validation > 0)
    out << fmt::format("{}/{}: {}, {}\n", options.out, data::kValidationTokens, count(result.documents[1], "document"),
                       count(result.tokens[1], "token"));
  for (int s = 0; s < (options.validation > 0 ? 2 : 1); ++s)
    if (result.documents[s] == 0)
      out << fmt::format(
          "note: no document fell to {}; --validation {} of so few documents is a matter of luck, and "
          "--validation-seed draws again\n",
          s == 0 ? data::kTrainTokens : data::kValidationTokens, options.validation);
  if (result.resumed_bytes > 0)
    out << fmt::format("{} of the text were done before\n", FormatBytes(result.resumed_bytes));
  if (done > 0)
    out << fmt::format("{} in {}, {}/s\n", FormatBytes(done), FormatSeconds(seconds),
                       FormatBytes(static_cast<int64_t>(static_cast<double>(done) / std::max(seconds, 1e-9))));
  return 0;
}

}  // namespace penstock::session
