// Reductions by the owner of a shard. Every member sends its slices of a shard to the owner, piece by piece; when all
// slices of a piece are there, the owner adds them in the planned order and, in an all-reduce, sends the sum to
// everybody.
//
// In place: the memory of a sum is written only after this member's own slice of that piece has left.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "comm/reduce_plan.h"
#include "comm/remote/exchanges.h"
#include "comm/shards.h"

namespace penstock::comm {
namespace {

// Pieces for which slices are received ahead of the one that is added next.
constexpr int64_t kAhead = 4;

class ReduceExchange final : public Exchange {
 public:
  ReduceExchange(DataLink& link, int self, int size, const Post& post)
      : link_(link),
        self_(self),
        size_(size),
        post_(post),
        item_(static_cast<int64_t>(c10::elementSize(post.signature.type))),
        step_(kPieceBytes / item_),
        whole_(post.signature.kind == CommKind::all_reduce || post.signature.kind == CommKind::all_reduce_tree),
        bounds_(whole_ ? ShardBounds(post.signature.count, size) : post.signature.bounds),
        unsent_(size),
        early_sums_(size),
        owed_(size, 0) {
    for (int owner = 0; owner < size; ++owner) {
      unsent_[owner].assign(NumPieces(owner), 0);
      if (whole_ && owner != self) owed_[owner] = Length(owner) * item_;
    }
    pieces_.resize(NumPieces(self));
    for (Piece& piece : pieces_) piece.slices.resize(size);
  }

  void Start() override {
    int64_t most = 0;
    for (int i = 0; i < size_; ++i) most = std::max(most, NumPieces(i));
    for (int64_t p = 0; p < most; ++p) {
      for (int i = 1; i < size_; ++i) SendSlices((self_ + i) % size_, p);
    }
  }

  void AllPosted(const std::vector<RemotePost>& posts) override {
    std::vector<TreeNode> nodes;
    for (const RemotePost& post : posts) {
      const bool tree = IsTree(post_.signature.kind);
      sources_.push_back(tree ? static_cast<int>(post.nodes.size()) : 1);
      nodes.insert(nodes.end(), post.nodes.begin(), post.nodes.end());
    }
    plan_ = IsTree(post_.signature.kind) ? TreePlan(nodes, post_.signature.detail) : FoldPlan(size_);
    for (int m = 0; m < size_; ++m) slices_needed_ += m == self_ ? 0 : sources_[m];
    all_posted_ = true;
    AddWhatIsThere();
  }

  void Data(const DataFrame& frame) override {
    const int64_t p = frame.offset / kPieceBytes;
    if (frame.phase == 1) {
      PENSTOCK_CHECK(whole_ && p < NumPieces(frame.from), "a sum of piece {} of a shard of {}", p,
                     NumPieces(frame.from));
      if (unsent_[frame.from][p] > 0) {
        early_sums_[frame.from].push_back(frame);
      } else {
        ReceiveSum(frame);
      }
      return;
    }
    PENSTOCK_CHECK(p < static_cast<int64_t>(pieces_.size()), "a slice of piece {} of a shard of {}", p, pieces_.size());
    if (p < next_ + kAhead) {
      ReceiveSlice(frame, p);
    } else {
      pieces_[p].early.push_back(frame);
    }
  }

  bool Complete() const override {
    return all_posted_ && next_ == static_cast<int64_t>(pieces_.size()) && sends_ == 0 && sums_owed() == 0;
  }
  int Awaited() const override {
    if (!all_posted_) return -1;
    if (next_ < static_cast<int64_t>(pieces_.size())) {
      const Piece& piece = pieces_[next_];
      for (int m = 0; m < size_; ++m) {
        if (m != self_ && static_cast<int>(piece.slices[m].size()) < sources_[m]) return m;
      }
    }
    for (int owner = 0; owner < size_; ++owner) {
      if (owed_[owner] > 0) return owner;
    }
    return -1;
  }

 private:
  struct Piece {
    std::vector<std::vector<at::Tensor>> slices;  // [member][its input]
    int arrived = 0;
    std::vector<DataFrame> early;
  };

  int64_t Length(int owner) const { return bounds_[owner + 1] - bounds_[owner]; }
  int64_t NumPieces(int owner) const { return (Length(owner) + step_ - 1) / step_; }
  int64_t PieceLength(int owner, int64_t p) const { return std::min(step_, Length(owner) - p * step_); }
  int64_t sums_owed() const {
    int64_t bytes = 0;
    for (const int64_t b : owed_) bytes += b;
    return bytes;
  }

  void SendSlices(int owner, int64_t p) {
    if (p >= NumPieces(owner)) return;
    const int64_t bytes = PieceLength(owner, p) * item_;
    // Counted before: a callback may come at once.
    unsent_[owner][p] = static_cast<int>(post_.inputs.size());
    sends_ += static_cast<int>(post_.inputs.size());
    for (size_t i = 0; i < post_.inputs.size(); ++i) {
      const char* from =
          static_cast<const char*>(post_.inputs[i].const_data_ptr()) + (bounds_[owner] + p * step_) * item_;
      link_.SendData(owner, {.source = static_cast<uint32_t>(i), .offset = p * kPieceBytes, .bytes = bytes}, from,
                     post_.inputs[i], [this, owner, p] {
                       --sends_;
                       if (--unsent_[owner][p] == 0) ReceiveEarlySums(owner, p);
                     });
    }
  }

  void ReceiveEarlySums(int owner, int64_t p) {
    auto& waiting = early_sums_[owner];
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].offset / kPieceBytes != p) continue;
      const DataFrame frame = std::move(waiting[i]);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      ReceiveSum(frame);
      return;  // there is one per piece
    }
  }

  void ReceiveSum(const DataFrame& frame) {
    const int owner = frame.from;
    const int64_t p = frame.offset / kPieceBytes, bytes = frame.bytes;
    PENSTOCK_CHECK_EQ(bytes, PieceLength(owner, p) * item_);
    char* to = static_cast<char*>(post_.out.mutable_data_ptr()) + (bounds_[owner] + p * step_) * item_;
    link_.ReceiveData(frame, to, post_.out, [this, owner, bytes] { owed_[owner] -= bytes; });
  }

  void ReceiveSlice(const DataFrame& frame, int64_t p) {
    PENSTOCK_CHECK_EQ(frame.bytes, PieceLength(self_, p) * item_);
    at::Tensor scratch = link_.TakeScratch();
    auto& slices = pieces_[p].slices[frame.from];
    if (slices.size() <= frame.source) slices.resize(frame.source + 1);
    slices[frame.source] = scratch;
    link_.ReceiveData(frame, scratch.mutable_data_ptr(), scratch, [this, p] {
      ++pieces_[p].arrived;
      AddWhatIsThere();
    });
  }

  // Not from inside itself: a sum that was sent at once may complete the next piece.
  void AddWhatIsThere() {
    if (adding_ || !all_posted_) return;
    adding_ = true;
    while (next_ < static_cast<int64_t>(pieces_.size()) && pieces_[next_].arrived == slices_needed_) {
      Add(next_);
      ++next_;
      const int64_t ahead = next_ + kAhead - 1;
      if (ahead < static_cast<int64_t>(pieces_.size())) {
        for (const DataFrame& frame : std::exchange(pieces_[ahead].early, {})) ReceiveSlice(frame, ahead);
      }
    }
    adding_ = false;
  }

  void Add(int64_t p) {
    Piece& piece = pieces_[p];
    const int64_t length = PieceLength(self_, p), begin = bounds_[self_] + p * step_;
    std::vector<const void*> sources;
    for (int m = 0; m < size_; ++m) {
      for (int i = 0; i < sources_[m]; ++i) {
        sources.push_back(m == self_ ? static_cast<const char*>(post_.inputs[i].const_data_ptr()) + begin * item_
                                     : static_cast<const char*>(piece.slices[m][i].const_data_ptr()));
      }
    }
    char* sum = static_cast<char*>(post_.out.mutable_data_ptr()) + (whole_ ? begin : p * step_) * item_;
    RunReduce(plan_, post_.signature.type, sources, {{sum, 0}}, 0, length);
    for (auto& slices : std::exchange(piece.slices, {})) {
      for (at::Tensor& scratch : slices) link_.GiveScratch(std::move(scratch));
    }
    if (!whole_) return;
    for (int i = 1; i < size_; ++i) {
      ++sends_;
      link_.SendData((self_ + i) % size_, {.phase = 1, .offset = p * kPieceBytes, .bytes = length * item_}, sum,
                     post_.out, [this] { --sends_; });
    }
  }

  DataLink& link_;
  const int self_;
  const int size_;
  const Post& post_;
  const int64_t item_;
  const int64_t step_;  // elements of a piece
  const bool whole_;    // an all-reduce: everybody gets all sums
  const std::vector<int64_t> bounds_;
  ReducePlan plan_;
  std::vector<int> sources_;  // by member
  int slices_needed_ = 0;     // of a piece, from others
  bool all_posted_ = false;
  bool adding_ = false;
  int sends_ = 0;                                   // not over
  std::vector<std::vector<int>> unsent_;            // [owner][piece]: own slices on their way
  std::vector<std::vector<DataFrame>> early_sums_;  // [owner]: of pieces that are still unsent
  std::vector<int64_t> owed_;                       // [owner]: bytes of sums
  std::vector<Piece> pieces_;                       // of the own shard
  int64_t next_ = 0;                                // the piece that is added next
};

}  // namespace

std::unique_ptr<Exchange> MakeReduceExchange(DataLink& link, int self, int size, const Post& post) {
  return std::make_unique<ReduceExchange>(link, self, size, post);
}

}  // namespace penstock::comm
