#include "data/train_tokenizer.h"

#include <atomic>
#include <chrono>

#include "base/error.h"
#include "data/text_pieces.h"
#include "data/tokenize/documents.h"
#include "data/tokenize/piece_work.h"

namespace penstock::data {
namespace {

struct CountedPiece {
  LeftOut left_out;
  int64_t documents = 0, text_bytes = 0;
  TextPosition after;
};

CountedPiece CountPiece(const TextPiece& piece, const std::vector<TextFile>& files, const DocumentOptions& options,
                        tokenizer::BpeTrainer& trainer) {
  CountedPiece counted;
  counted.left_out =
      VisitDocuments(piece, files, options, [&](std::string_view text, const TextFile&, int64_t, bool ends) {
        trainer.Count(text);
        counted.text_bytes += static_cast<int64_t>(text.size());
        counted.documents += ends;
      });
  counted.after = piece.after;
  return counted;
}

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void CountAll(const TrainTokenizerOptions& options, const std::vector<TextFile>& files, tokenizer::BpeTrainer& trainer,
              const ProgressSink& sink, TrainTokenizerResult& result) {
  const DocumentOptions documents{options.jsonl_field, options.skip_malformed};
  TextPieces pieces(files, {.separator = options.document_separator,
                            .cuts_at_lines = trainer.CutsAtLines(),
                            .cuts_at_words = trainer.CutsAtWords(),
                            .piece_bytes = static_cast<size_t>(options.piece_bytes)});
  WorkProgress progress("count", result.input_bytes, WorkProgress::Unit::bytes, sink);
  LeftOutWarnings warnings;
  WorkThroughPieces<CountedPiece>(
      pieces, options.threads, progress,
      [&](const TextPiece& piece) { return CountPiece(piece, files, documents, trainer); },
      [&](const CountedPiece& counted) {
        result.documents += counted.documents;
        result.text_bytes += counted.text_bytes;
        result.empty_documents += counted.left_out.empty_documents;
        result.malformed_lines += counted.left_out.malformed_lines;
        warnings.Warn(counted.left_out.faults);
        progress.Update(counted.after.input_bytes);
      });
  result.skipped_files = pieces.where().skipped_files;
}

}  // namespace

TrainTokenizerResult TrainTokenizer(const TrainTokenizerOptions& options, const ProgressSink& sink) {
  tokenizer::BpeTrainer trainer(options.bpe);  // refuses before anything is read
  const std::vector<TextFile> files = FindTextFiles(options.text);
  TrainTokenizerResult result;
  result.files = static_cast<int64_t>(files.size());
  for (const TextFile& file : files) result.input_bytes += file.bytes;

  const double start = Seconds();
  CountAll(options, files, trainer, sink, result);
  if (result.documents == 0)
    throw UserError("there is no text: {} files are no text, and {} documents are empty", result.skipped_files,
                    result.empty_documents);
  const double counted = Seconds();
  result.count_seconds = counted - start;

  WorkProgress progress("merge", options.bpe.vocabulary, WorkProgress::Unit::count, sink);
  std::atomic<int64_t> tokens = 0;
  progress.UpdateWhile([&] { result.trained = trainer.Train([&](int64_t done, int64_t) { tokens = done; }); },
                       [&] { return tokens.load(); });
  result.merge_seconds = Seconds() - counted;
  return result;
}

}  // namespace penstock::data
