// src/tokenizer/bpe/model.h
//
// Byte-pair encoding of one piece of text (Sennrich et al. 2016, arXiv:1508.07909; on bytes: Radford et al. 2019): the
// piece is taken apart into its smallest tokens, then the pair of neighbours that was learned first is merged, the
// leftmost one first, until no pair is left that was learned.
//
// Threads: immutable after construction; a Workspace belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock::tokenizer {

struct BpeTables {
  // Text of the tokens by id; of byte-level models the bytes. Ids that are not part of the model are empty.
  std::vector<std::string> tokens;
  // Pairs of ids in the order they were learned, and what each gives.
  struct Merge {
    int32_t left = 0, right = 0, merged = 0;
  };
  std::vector<Merge> merges;

  // Byte-level models start from bytes, others from characters.
  bool byte_level = true;
  // A piece that is a token is that token, whatever the merges say.
  bool ignore_merges = false;
  // Models of characters: a character that is no token becomes the tokens <0x00> .. <0xFF> of its bytes, where all of
  // them are there.
  bool byte_fallback = false;
  // What becomes of the rest; -1: it is left out.
  int32_t unknown = -1;
  bool fuse_unknown = false;

  // Ids that no text becomes: special tokens. Where merges spell one, the two tokens that were merged stay in its
  // place. `unknown` may be one.
  std::vector<int32_t> specials;
};

class BpeModel {
 public:
  explicit BpeModel(BpeTables tables);

  class Workspace {
   public:
    Workspace();
    ~Workspace();

   private:
    friend class BpeModel;
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
  };

  // Appends the ids of one piece.
  void Encode(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const;

  const BpeTables& tables() const { return tables_; }
  // The id of a token by its text, or -1.
  int32_t Find(std::string_view token) const;
  // Does every byte have a token of its own (byte-level), so that all text can be encoded without loss?
  bool every_byte() const { return every_byte_; }

 private:
  struct PairSlot {
    uint64_t pair = ~uint64_t{0};
    int32_t rank = 0;
    int32_t merged = 0;
  };
  const PairSlot* FindPair(int32_t left, int32_t right) const;
  void EncodeUncached(std::string_view piece, Workspace::Scratch& scratch, std::vector<int32_t>& ids) const;
  void Start(std::string_view piece, std::vector<int32_t>& symbols) const;
  void MergeShort(std::vector<int32_t>& symbols, Workspace::Scratch& scratch) const;
  void MergeLong(std::vector<int32_t>& symbols, Workspace::Scratch& scratch) const;
  void AppendText(int32_t id, std::vector<int32_t>& ids) const;

  BpeTables tables_;
  std::vector<PairSlot> pairs_;  // open addressing, at most half full
  int pair_shift_ = 0;
  std::unordered_map<std::string_view, int32_t> ids_;  // views into tables_.tokens
  int32_t byte_ids_[256];                              // of byte-level or fallback tokens; -1: none
  bool every_byte_ = true;
  std::unordered_map<int32_t, BpeTables::Merge> spelled_specials_;  // the first merge that gives a special token
};

}  // namespace penstock::tokenizer
