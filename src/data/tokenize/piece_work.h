// src/data/tokenize/piece_work.h
//
// A function over the pieces of texts, on several threads, with the results in order and bounded text under way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/work_progress.h"
#include "data/ordered_work.h"
#include "data/text_pieces.h"

namespace penstock::data {

// Text under way: pieces that are read and whose result is not taken. One is let through whatever its size.
inline constexpr size_t kPiecesPerThread = 2;
inline constexpr int64_t kBytesPerThread = 8 << 20;

// `work` on any thread; `take` on this one, in the order of the pieces. Exceptions of both pass. `progress` ticks while
// a piece is read or waited for; the place reached is for `take` to say.
template <typename Result>
void WorkThroughPieces(TextPieces& pieces, int threads, WorkProgress& progress,
                       const std::function<Result(const TextPiece&)>& work,
                       const std::function<void(const Result&)>& take) {
  const auto count = static_cast<size_t>(std::max(threads, 1));
  std::deque<int64_t> sizes;  // of the pieces under way
  int64_t under_way = 0;
  OrderedWork<TextPiece, Result> ordered(static_cast<int>(count), work);
  for (bool more = true; more || ordered.pending() > 0;) {
    while (more && ordered.pending() < kPiecesPerThread * count + 1 &&
           (ordered.pending() == 0 || under_way < kBytesPerThread * static_cast<int64_t>(count))) {
      std::optional<TextPiece> piece = pieces.Next();
      more = piece.has_value();
      if (!more) break;
      sizes.push_back(static_cast<int64_t>(piece->text.size()));
      under_way += sizes.back();
      ordered.Submit(std::move(*piece));
      progress.Tick();
    }
    if (ordered.pending() == 0) break;
    const Result result = ordered.Take([&] { progress.Tick(); });
    under_way -= sizes.front();
    sizes.pop_front();
    take(result);
  }
}

// Warns of lines that are left out: the first ten by name.
class LeftOutWarnings {
 public:
  // `prefix` is put before every warning ("tokenize: ").
  explicit LeftOutWarnings(std::string prefix = "") : prefix_(std::move(prefix)) {}
  void Warn(const std::vector<std::string>& faults);

 private:
  std::string prefix_;
  int named_ = 0;
};

}  // namespace penstock::data
