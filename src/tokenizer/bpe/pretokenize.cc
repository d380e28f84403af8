#include "tokenizer/bpe/pretokenize.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/bpe/normalize.h"
#include "tokenizer/bpe/unicode.h"

namespace penstock::tokenizer {
namespace {

// A stretch of a piece, and whether the pattern matched it.
struct Stretch {
  size_t begin = 0, end = 0;
  bool matched = false;
};

// Stretches in order, without gaps -> what is left of them as pieces.
std::vector<Stretch> Behave(const std::vector<Stretch>& stretches, SplitBehavior behavior) {
  std::vector<Stretch> out;
  bool last_matched = false;
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Stretch& s : stretches)
        if (!s.matched) out.push_back(s);
      break;
    case SplitBehavior::kIsolated:
      out = stretches;
      break;
    case SplitBehavior::kContiguous:
      for (const Stretch& s : stretches) {
        if (!out.empty() && s.matched == last_matched)
          out.back().end = s.end;
        else
          out.push_back(s);
        last_matched = s.matched;
      }
      break;
    case SplitBehavior::kMergedWithPrevious:
      for (const Stretch& s : stretches) {
        if (s.matched && !last_matched && !out.empty())
          out.back().end = s.end;
        else
          out.push_back(s);
        last_matched = s.matched;
      }
      break;
    case SplitBehavior::kMergedWithNext: {
      for (auto s = stretches.rbegin(); s != stretches.rend(); ++s) {
        if (s->matched && !last_matched && !out.empty())
          out.back().begin = s->begin;
        else
          out.push_back(*s);
        last_matched = s->matched;
      }
      std::reverse(out.begin(), out.end());
      break;
    }
  }
  return out;
}

// A pre-tokenizer that cuts every piece where `Match` says.
template <typename Matcher>
class Splitter : public PreTokenizer {
 public:
  Splitter(Matcher matcher, SplitBehavior behavior, bool invert)
      : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}
  void Apply(Pieces& pieces) const override {
    std::vector<Pieces::Piece> out;
    std::vector<Stretch> stretches;
    for (const Pieces::Piece& piece : pieces.pieces) {
      stretches.clear();
      matcher_(piece.text, stretches);
      if (invert_)
        for (Stretch& s : stretches) s.matched = !s.matched;
      for (const Stretch& s : Behave(stretches, behavior_))
        if (s.end > s.begin) out.push_back({piece.text.substr(s.begin, s.end - s.begin), piece.first && s.begin == 0});
    }
    pieces.pieces = std::move(out);
  }

 private:
  Matcher matcher_;
  SplitBehavior behavior_;
  bool invert_;
};

template <typename Matcher>
std::unique_ptr<PreTokenizer> MakeSplitter(Matcher matcher, SplitBehavior behavior, bool invert = false) {
  return std::make_unique<Splitter<Matcher>>(std::move(matcher), behavior, invert);
}

// Finds matches one after the other: next(from) gives [begin, end) or nothing.
template <typename Next>
void FindStretches(std::string_view text, std::vector<Stretch>& stretches, Next next) {
  size_t done = 0, at = 0;
  while (at <= text.size()) {
    const auto found = next(at);
    if (!found) break;
    if (found->second == found->first) {  // an empty match cuts nothing
      at = found->second + 1;
      continue;
    }
    if (found->first > done) stretches.push_back({done, found->first, false});
    stretches.push_back({found->first, found->second, true});
    done = at = found->second;
  }
  if (done < text.size()) stretches.push_back({done, text.size(), false});
}

// Every character for itself: matched when it is of one of the classes.
auto EachCharacter(bool (*wanted)(Character)) {
  return [wanted](std::string_view text, std::vector<Stretch>& stretches) {
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const Character c = FrontCharacter(text.substr(at));
      if (wanted(c)) {
        if (at > done) stretches.push_back({done, at, false});
        stretches.push_back({at, at + c.length, true});
        done = at + c.length;
      }
      at += c.length;
    }
    if (done < text.size()) stretches.push_back({done, text.size(), false});
  };
}

struct Scan : PreTokenizer {
  explicit Scan(ScanPattern pattern) : pattern(pattern) {}
  void Apply(Pieces& pieces) const override {
    std::vector<Pieces::Piece> out;
    for (const Pieces::Piece& piece : pieces.pieces) {
      bool first = piece.first;
      for (std::string_view rest = piece.text; !rest.empty();) {
        const size_t n = ScanPiece(pattern, rest);
        out.push_back({rest.substr(0, n), first});
        rest.remove_prefix(n);
        first = false;
      }
    }
    pieces.pieces = std::move(out);
  }
  ScanPattern pattern;
};

struct PrefixSpace : PreTokenizer {
  void Apply(Pieces& pieces) const override {
    for (Pieces::Piece& piece : pieces.pieces) {
      if (piece.text.empty() || piece.text.front() == ' ') continue;
      pieces.changed.push_back(' ' + std::string(piece.text));
      piece.text = pieces.changed.back();
    }
  }
};

struct Metaspace : PreTokenizer {
  Metaspace(std::string replacement, PrependScheme scheme, bool split)
      : replacement(replacement),
        scheme(scheme),
        split(split ? MakeSplit(replacement, SplitBehavior::kMergedWithNext, false) : nullptr) {}
  void Apply(Pieces& pieces) const override {
    for (Pieces::Piece& piece : pieces.pieces) {
      std::string text = ReplaceAll(piece.text, " ", replacement);
      const bool wanted = scheme == PrependScheme::kAlways || (scheme == PrependScheme::kFirst && piece.first);
      if (wanted && !text.starts_with(replacement)) text = replacement + text;
      pieces.changed.push_back(std::move(text));
      piece.text = pieces.changed.back();
    }
    if (split != nullptr) split->Apply(pieces);
  }
  std::string replacement;
  PrependScheme scheme;
  std::unique_ptr<PreTokenizer> split;
};

struct Sequence : PreTokenizer {
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps(std::move(steps)) {}
  void Apply(Pieces& pieces) const override {
    for (const auto& step : steps) step->Apply(pieces);
  }
  std::vector<std::unique_ptr<PreTokenizer>> steps;
};

bool HasClass(Character c, uint8_t wanted) { return (ClassOf(CharacterClasses(), c.code) & wanted) != 0; }

}  // namespace

std::unique_ptr<PreTokenizer> MakeScan(ScanPattern pattern) { return std::make_unique<Scan>(pattern); }

std::unique_ptr<PreTokenizer> MakeSplit(std::unique_ptr<Regex> regex, SplitBehavior behavior, bool invert) {
  return MakeSplitter(
      [shared = std::shared_ptr<const Regex>(std::move(regex))](std::string_view text,
                                                                std::vector<Stretch>& stretches) {
        FindStretches(text, stretches, [&](size_t from) { return shared->Find(text, from); });
      },
      behavior, invert);
}

std::unique_ptr<PreTokenizer> MakeSplit(std::string wanted, SplitBehavior behavior, bool invert) {
  PENSTOCK_CHECK(!wanted.empty());
  return MakeSplitter(
      [wanted = std::move(wanted)](std::string_view text, std::vector<Stretch>& stretches) {
        FindStretches(text, stretches, [&](size_t from) -> std::optional<std::pair<size_t, size_t>> {
          const size_t found = text.find(wanted, from);
          if (found == std::string_view::npos) return std::nullopt;
          return std::pair(found, found + wanted.size());
        });
      },
      behavior, invert);
}

std::unique_ptr<PreTokenizer> MakePrefixSpace() { return std::make_unique<PrefixSpace>(); }

std::unique_ptr<PreTokenizer> MakeDigits(bool individual) {
  return MakeSplitter(EachCharacter([](Character c) { return HasClass(c, kNumber); }),
                      individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

std::unique_ptr<PreTokenizer> MakePunctuation(SplitBehavior behavior) {
  return MakeSplitter(EachCharacter([](Character c) {
                        const bool ascii = (c.code >= 33 && c.code <= 47) || (c.code >= 58 && c.code <= 64) ||
                                           (c.code >= 91 && c.code <= 96) || (c.code >= 123 && c.code <= 126);
                        return ascii || HasClass(c, kPunctuation);
                      }),
                      behavior);
}

std::unique_ptr<PreTokenizer> MakeWhitespaceSplit() {
  return MakeSplitter(EachCharacter([](Character c) { return HasClass(c, kSpace); }), SplitBehavior::kRemoved);
}

std::unique_ptr<PreTokenizer> MakeMetaspace(std::string replacement, PrependScheme scheme, bool split) {
  return std::make_unique<Metaspace>(std::move(replacement), scheme, split);
}

std::unique_ptr<PreTokenizer> MakeSequence(std::vector<std::unique_ptr<PreTokenizer>> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace penstock::tokenizer
