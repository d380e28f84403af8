#include "tokenizer/bpe/model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <queue>

#include "base/error.h"
#include "tokenizer/bpe/unicode.h"

namespace penstock::tokenizer {
namespace {

constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();
constexpr size_t kShort = 48;          // symbols; up to here looking at all pairs each time is faster than a heap
constexpr size_t kLongestCached = 64;  // bytes
constexpr size_t kCacheSlots = 1 << 16;
constexpr size_t kCacheBytes = 8 << 20;

uint64_t PairKey(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}
uint64_t Mix(uint64_t key) {
  key *= 0x9E3779B97F4A7C15u;
  return key ^ key >> 29;
}
uint64_t HashPiece(std::string_view piece) {
  uint64_t hash = piece.size();
  size_t i = 0;
  for (; i + 8 <= piece.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, piece.data() + i, 8);
    hash = Mix(hash ^ word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, piece.data() + i, piece.size() - i);
  return Mix(hash ^ rest);
}

}  // namespace

// Words repeat: the ids of pieces that were seen are kept. When it is full it starts again from nothing.
struct BpeModel::Workspace::Scratch {
  struct Slot {
    uint32_t text = 0, ids = 0;  // where in `texts` and `ids`
    uint16_t bytes = 0, count = 0;
    uint32_t tag = 0;  // of the hash
  };
  const BpeModel* owner = nullptr;
  std::vector<Slot> slots;
  size_t used = 0;
  std::string texts;
  std::vector<int32_t> ids;

  std::vector<int32_t> symbols, ranks, previous, next;

  void Reset(const BpeModel* model) {
    owner = model;
    slots.assign(kCacheSlots, {});
    used = 0;
    texts.clear();
    ids.clear();
  }
};

BpeModel::Workspace::Workspace() : scratch_(std::make_unique<Scratch>()) {}
BpeModel::Workspace::~Workspace() = default;

BpeModel::BpeModel(BpeTables tables) : tables_(std::move(tables)) {
  std::vector<bool> special(tables_.tokens.size());
  for (const int32_t id : tables_.specials)
    if (static_cast<size_t>(id) < special.size()) special[static_cast<size_t>(id)] = true;
  for (size_t id = 0; id < tables_.tokens.size(); ++id)
    if (!tables_.tokens[id].empty() && !special[id]) ids_.emplace(tables_.tokens[id], static_cast<int32_t>(id));
  for (const BpeTables::Merge& merge : tables_.merges)
    if (special[static_cast<size_t>(merge.merged)]) spelled_specials_.emplace(merge.merged, merge);

  const size_t slots = std::bit_ceil(std::max<size_t>(16, 2 * tables_.merges.size()));
  pair_shift_ = 64 - std::countr_zero(slots);
  pairs_.resize(slots);
  for (size_t rank = 0; rank < tables_.merges.size(); ++rank) {
    const BpeTables::Merge& merge = tables_.merges[rank];
    const uint64_t key = PairKey(merge.left, merge.right);
    size_t at = Mix(key) >> pair_shift_;
    while (pairs_[at].pair != ~uint64_t{0} && pairs_[at].pair != key) at = (at + 1) & (slots - 1);
    // Of a pair that is listed twice the later one counts.
    pairs_[at] = {key, static_cast<int32_t>(rank), merge.merged};
  }

  for (int b = 0; b < 256; ++b) {
    byte_ids_[b] = tables_.byte_level ? Find(std::string(1, static_cast<char>(b))) : Find(fmt::format("<0x{:02X}>", b));
    every_byte_ = every_byte_ && byte_ids_[b] >= 0;
  }
}

int32_t BpeModel::Find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const BpeModel::PairSlot* BpeModel::FindPair(int32_t left, int32_t right) const {
  const uint64_t key = PairKey(left, right);
  for (size_t at = Mix(key) >> pair_shift_;; at = (at + 1) & (pairs_.size() - 1)) {
    if (pairs_[at].pair == key) return &pairs_[at];
    if (pairs_[at].pair == ~uint64_t{0}) return nullptr;
  }
}

void BpeModel::Encode(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const {
  Workspace::Scratch& scratch = *workspace.scratch_;
  if (scratch.owner != this) scratch.Reset(this);
  if (piece.size() > kLongestCached) return EncodeUncached(piece, scratch, ids);

  const uint64_t hash = HashPiece(piece);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t at = hash & (kCacheSlots - 1);
  for (; scratch.slots[at].bytes != 0; at = (at + 1) & (kCacheSlots - 1)) {
    const auto& slot = scratch.slots[at];
    if (slot.tag == tag && slot.bytes == piece.size() &&
        std::memcmp(scratch.texts.data() + slot.text, piece.data(), piece.size()) == 0) {
      ids.insert(ids.end(), scratch.ids.begin() + slot.ids, scratch.ids.begin() + slot.ids + slot.count);
      return;
    }
  }
  const size_t before = ids.size();
  EncodeUncached(piece, scratch, ids);
  if (scratch.used > kCacheSlots / 2 || scratch.texts.size() > kCacheBytes) {
    scratch.Reset(this);
    at = hash & (kCacheSlots - 1);
  }
  ++scratch.used;
  scratch.slots[at] = {static_cast<uint32_t>(scratch.texts.size()), static_cast<uint32_t>(scratch.ids.size()),
                       static_cast<uint16_t>(piece.size()), static_cast<uint16_t>(ids.size() - before), tag};
  scratch.texts += piece;
  scratch.ids.insert(scratch.ids.end(), ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
}

void BpeModel::EncodeUncached(std::string_view piece, Workspace::Scratch& scratch, std::vector<int32_t>& ids) const {
  if (tables_.ignore_merges) {
    if (const int32_t id = Find(piece); id >= 0) {
      ids.push_back(id);
      return;
    }
  }
  std::vector<int32_t>& symbols = scratch.symbols;
  symbols.clear();
  Start(piece, symbols);
  if (symbols.size() <= kShort)
    MergeShort(symbols, scratch);
  else
    MergeLong(symbols, scratch);
  if (spelled_specials_.empty())
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  else
    for (const int32_t id : symbols) AppendText(id, ids);
}

void BpeModel::AppendText(int32_t id, std::vector<int32_t>& ids) const {
  const auto found = spelled_specials_.find(id);
  if (found == spelled_specials_.end()) return ids.push_back(id);
  AppendText(found->second.left, ids);
  AppendText(found->second.right, ids);
}

void BpeModel::Start(std::string_view piece, std::vector<int32_t>& symbols) const {
  bool after_unknown = false;
  const auto unknown = [&] {
    if (tables_.unknown >= 0 && !(after_unknown && tables_.fuse_unknown)) symbols.push_back(tables_.unknown);
    after_unknown = true;
  };
  if (tables_.byte_level) {
    for (const char c : piece) {
      const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
      if (id < 0) {
        unknown();
        continue;
      }
      symbols.push_back(id);
      after_unknown = false;
    }
    return;
  }
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, FrontCharacter(piece).length);
    piece.remove_prefix(character.size());
    if (const int32_t id = Find(character); id >= 0) {
      symbols.push_back(id);
      after_unknown = false;
      continue;
    }
    const bool all = std::all_of(character.begin(), character.end(),
                                 [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
    if (!tables_.byte_fallback || !all) {
      unknown();
      continue;
    }
    for (const char c : character) symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    after_unknown = false;
  }
}

void BpeModel::MergeShort(std::vector<int32_t>& symbols, Workspace::Scratch& scratch) const {
  size_t n = symbols.size();
  if (n < 2) return;
  std::vector<int32_t>& ranks = scratch.ranks;
  ranks.resize(n);
  const auto rank_of = [&](size_t i) {
    const PairSlot* pair = FindPair(symbols[i], symbols[i + 1]);
    return pair == nullptr ? kNoRank : pair->rank;
  };
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = rank_of(i);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (ranks[i] < ranks[best]) best = i;
    if (ranks[best] == kNoRank) break;
    symbols[best] = tables_.merges[static_cast<size_t>(ranks[best])].merged;
    for (size_t i = best + 1; i + 1 < n; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 2 < n; ++i) ranks[i] = ranks[i + 1];
    --n;
    if (best + 1 < n) ranks[best] = rank_of(best);
    if (best > 0) ranks[best - 1] = rank_of(best - 1);
  }
  symbols.resize(n);
}

void BpeModel::MergeLong(std::vector<int32_t>& symbols, Workspace::Scratch& scratch) const {
  const auto n = static_cast<int32_t>(symbols.size());
  std::vector<int32_t>&previous = scratch.previous, &next = scratch.next;
  previous.resize(symbols.size());
  next.resize(symbols.size());
  for (int32_t i = 0; i < n; ++i) {
    previous[static_cast<size_t>(i)] = i - 1;
    next[static_cast<size_t>(i)] = i + 1 < n ? i + 1 : -1;
  }
  struct Candidate {
    int32_t rank, at, left, right;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto symbol = [&](int32_t i) -> int32_t& { return symbols[static_cast<size_t>(i)]; };
  const auto offer = [&](int32_t at) {
    if (at < 0 || next[static_cast<size_t>(at)] < 0) return;
    const int32_t left = symbol(at), right = symbol(next[static_cast<size_t>(at)]);
    if (const PairSlot* pair = FindPair(left, right)) queue.push({pair->rank, at, left, right});
  };
  for (int32_t i = 0; i + 1 < n; ++i) offer(i);
  constexpr int32_t kGone = -1;
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    const int32_t after = next[static_cast<size_t>(top.at)];
    // Outdated when one of the two was merged since.
    if (symbol(top.at) != top.left || after < 0 || symbol(after) != top.right) continue;
    symbol(top.at) = tables_.merges[static_cast<size_t>(top.rank)].merged;
    symbol(after) = kGone;
    const int32_t following = next[static_cast<size_t>(after)];
    next[static_cast<size_t>(top.at)] = following;
    if (following >= 0) previous[static_cast<size_t>(following)] = top.at;
    offer(previous[static_cast<size_t>(top.at)]);
    offer(top.at);
  }
  symbols.erase(std::remove(symbols.begin(), symbols.end(), kGone), symbols.end());
}

}  // namespace penstock::tokenizer
