#include "schedule/passes/communication.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "schedule/passes/make_action.h"

namespace penstock::schedule {
namespace {

class Walk {
 public:
  Walk(Schedule& schedule, const LowerSpec& spec)
      : s_(schedule),
        activation_(FindOp(ops::kActivation)),
        gradient_(FindOp(ops::kGradient)),
        micro_batches_(schedule.num_micro_batches()),
        forward_done_(static_cast<size_t>(schedule.num_stages()) * micro_batches_),
        backward_done_(forward_done_.size()),
        next_(schedule.ranks.size()),
        out_(schedule.ranks.size()) {
    for (size_t e = 0; e < s_.graph.edges().size(); ++e)
      edge_bytes_.push_back(
          spec.boundary_bytes.empty() ? SizeId{0} : s_.SizeOf(fmt::format("boundary {}", e), spec.boundary_bytes[e]));
    for (size_t r = 0; r < out_.size(); ++r) out_[r].reserve(s_.ranks[r].size() * 2);
  }

  void Run() {
    size_t left = 0;
    for (const auto& list : s_.ranks) left += list.size();
    while (left > 0) {
      size_t emitted = 0;
      for (size_t r = 0; r < s_.ranks.size(); ++r) {
        if (next_[r] == s_.ranks[r].size()) continue;
        const Action& action = s_.ranks[r][next_[r]];
        if (Missing(action)) continue;
        Emit(static_cast<int>(r), action);
        ++next_[r];
        ++emitted;
      }
      if (emitted == 0) throw UserError("the order of compute cannot proceed: {}", Blocked());
      left -= emitted;
    }
    s_.ranks = std::move(out_);
  }

 private:
  size_t At(int stage, int m) const { return static_cast<size_t>(stage) * micro_batches_ + m; }

  // The compute that `action` still waits for.
  std::optional<Key> Missing(const Action& action) const {
    const int stage = action.key.unit.stage;
    const int m = action.key.micro_batch;
    const auto unless = [&](bool done, Kind kind, int s) {
      return done ? std::nullopt : std::optional<Key>(MakeCompute(kind, s, m).key);
    };
    switch (action.key.kind) {
      case Kind::forward:
        for (const int e : s_.graph.inputs(stage)) {
          const int from = s_.graph.edges()[e].from;
          if (!forward_done_[At(from, m)]) return unless(false, Kind::forward, from);
        }
        return std::nullopt;
      case Kind::backward:
      case Kind::backward_input:
        for (const int e : s_.graph.outputs(stage)) {
          const int to = s_.graph.edges()[e].to;
          if (!backward_done_[At(to, m)]) return unless(false, Kind::backward, to);
        }
        return unless(forward_done_[At(stage, m)], Kind::forward, stage);
      case Kind::recompute:
        return unless(forward_done_[At(stage, m)], Kind::forward, stage);
      case Kind::backward_weight:
        return unless(backward_done_[At(stage, m)], Kind::backward_input, stage);
      default:
        return std::nullopt;
    }
  }

  void Emit(int rank, const Action& action) {
    out_[rank].push_back(action);
    const int stage = action.key.unit.stage;
    const int m = action.key.micro_batch;
    if (action.key.kind == Kind::forward) {
      forward_done_[At(stage, m)] = true;
      for (const int e : s_.graph.outputs(stage)) Message(rank, stage, s_.graph.edges()[e].to, e, m, activation_);
    } else if (action.key.kind == Kind::backward || action.key.kind == Kind::backward_input) {
      backward_done_[At(stage, m)] = true;
      for (const int e : s_.graph.inputs(stage)) Message(rank, stage, s_.graph.edges()[e].from, e, m, gradient_);
    }
  }

  void Message(int rank, int producer, int consumer, int edge, int m, OpId op) {
    const int peer = s_.route.rank_of(consumer, m);
    if (peer == rank) return;
    Action send = MakeAction(Kind::send, {0, static_cast<uint16_t>(producer)}, m, op, edge);
    send.bytes = edge_bytes_[edge];
    Action recv = send;
    recv.key.kind = Kind::recv;
    recv.stream = DefaultStream(Kind::recv);
    send.peer_or_group = peer;
    recv.peer_or_group = rank;
    out_[rank].push_back(send);
    out_[peer].push_back(recv);
  }

  std::string Blocked() const {
    std::string text;
    for (size_t r = 0; r < s_.ranks.size(); ++r) {
      if (next_[r] == s_.ranks[r].size()) continue;
      const Action& action = s_.ranks[r][next_[r]];
      text += fmt::format("{}rank {} waits at '{}' for '{}'", text.empty() ? "" : "; ", r, ToString(action),
                          ToString(*Missing(action)));
    }
    return text;
  }

  Schedule& s_;
  const OpId activation_, gradient_;
  const int micro_batches_;
  std::vector<bool> forward_done_, backward_done_;  // [stage * micro-batches + micro-batch]
  std::vector<SizeId> edge_bytes_;
  std::vector<size_t> next_;
  std::vector<std::vector<Action>> out_;
};

}  // namespace

void InsertCommunication(Schedule& schedule, const LowerSpec& spec) { Walk(schedule, spec).Run(); }

}  // namespace penstock::schedule
