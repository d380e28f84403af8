#include "data/train_tokenizer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>

#include "base/error.h"
#include "base/log.h"
#include "data/ordered_work.h"
#include "data/text_pieces.h"
#include "data/tokenize/documents.h"

namespace penstock::data {
namespace {

// Text under way, as of Tokenize.
constexpr size_t kPiecesPerThread = 2;
constexpr int64_t kBytesPerThread = 8 << 20;

struct CountedPiece {
  LeftOut left_out;
  int64_t documents = 0, text_bytes = 0, size = 0;
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
  counted.size = static_cast<int64_t>(piece.text.size());
  counted.after = piece.after;
  return counted;
}

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void CountAll(const TrainTokenizerOptions& options, const std::vector<TextFile>& files, tokenizer::BpeTrainer& trainer,
              const ProgressSink& sink, TrainTokenizerResult& result) {
  const DocumentOptions documents{options.jsonl_field, options.skip_malformed};
  const auto threads = static_cast<size_t>(std::max(options.threads, 1));
  TextPieces pieces(files, {.separator = options.document_separator,
                            .cuts_at_lines = trainer.CutsAtLines(),
                            .cuts_at_words = trainer.CutsAtWords(),
                            .piece_bytes = static_cast<size_t>(options.piece_bytes)});
  WorkProgress progress("count", result.input_bytes, WorkProgress::Unit::bytes, sink);
  int64_t under_way = 0, named = 0;
  OrderedWork<TextPiece, CountedPiece> work(
      static_cast<int>(threads), [&](const TextPiece& piece) { return CountPiece(piece, files, documents, trainer); });
  for (bool more = true; more || work.pending() > 0;) {
    while (more && work.pending() < kPiecesPerThread * threads + 1 &&
           (work.pending() == 0 || under_way < kBytesPerThread * static_cast<int64_t>(threads))) {
      std::optional<TextPiece> piece = pieces.Next();
      more = piece.has_value();
      if (!more) break;
      under_way += static_cast<int64_t>(piece->text.size());
      work.Submit(std::move(*piece));
      progress.Tick();
    }
    if (work.pending() == 0) break;
    const CountedPiece counted = work.Take([&] { progress.Tick(); });
    under_way -= counted.size;
    result.documents += counted.documents;
    result.text_bytes += counted.text_bytes;
    result.empty_documents += counted.left_out.empty_documents;
    result.malformed_lines += counted.left_out.malformed_lines;
    for (const std::string& fault : counted.left_out.faults) {
      if (++named <= 10) log::Warning("a line is left out: {}", fault);
      if (named == 10) log::Warning("further lines are counted and not named");
    }
    progress.Update(counted.after.input_bytes);
  }
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
