#include "cost/memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/tree.h"
#include "schedule/buffers.h"
#include "schedule/effects.h"

namespace penstock::cost {
namespace {

using model::LayerSpec;
using schedule::Access;
using schedule::Action;
using schedule::BufferId;
using schedule::Kind;
using schedule::Slot;

// Resident before the first tensor: measured with libtorch 2.13 (docs/decisions.md, "Memory of a plan").
constexpr int64_t kProcessBytes = int64_t{136} << 20;
// The allocator rounds a block up to the next of its size classes, at most by this part (memory/block_cache.h).
constexpr int64_t kRoundingDivisor = 16;
// A token and its label, 64-bit integers.
constexpr int64_t kTokenBytes = 16;
// A loss, the scale of its gradient: numbers that are tensors for a moment.
constexpr int64_t kNumberBytes = 64;

int64_t Sum(const BytesByClass& bytes) {
  int64_t sum = 0;
  for (const int64_t b : bytes) sum += b;
  return sum;
}

// The partial sums of one gradient buffer: how many tensors of the unit's size are alive.
class GradientSums {
 public:
  void Add(int32_t m, int32_t n, bool tree) {
    if (!tree) {
      running_ = true;
      return;
    }
    TreeNode node{m, m + 1};
    while (node.size() < n) {
      const auto sibling = nodes_.find(TreeSibling(node, n));
      if (sibling == nodes_.end()) break;
      nodes_.erase(sibling);
      node = TreeParent(node, n);
    }
    nodes_.insert(node);
  }
  int64_t count() const { return running_ ? 1 : static_cast<int64_t>(nodes_.size()); }

 private:
  std::set<TreeNode> nodes_;
  bool running_ = false;
};

// Share of a layer's kept tensors that its first operation needs: a norm's input and statistics.
constexpr int64_t kFirstOperations = 8;

struct LayerSizes {
  int64_t saved = 0;
  int64_t largest_leaf = 0;
  int64_t leaves = 0;    // gradients of its parameters
  int64_t deferred = 0;  // the part of them that a split backward makes later
  int64_t stash = 0;
  int64_t workspace = 0;
  int64_t weight_workspace = 0;  // of the weight half alone
};

struct StageSizes {
  std::vector<LayerSizes> layers;
  int64_t saved = 0, stash = 0;
  int64_t forward_workspace =
      0;               // beyond what the whole stage keeps: early layers work while later ones kept nothing yet
  int64_t output = 0;  // boundary to the next stage; 0 for the last
};

bool Deferrable(const LayerSpec& layer) { return layer.weight_flops.per_token > 0; }
bool IsMatrix(const model::ParameterSpec& parameter) { return parameter.shape.size() == 2; }

struct Matrices {
  int64_t widest = 0;          // largest extent
  int64_t largest = 0;         // elements
  int64_t outputs = 0;         // sum of the output extents
  int64_t widest_outputs = 0;  // of all matrices whose output is the widest: of a gated activation, two
};
Matrices MatricesOf(const model::ModelSpec& spec, const LayerSpec& layer) {
  Matrices m;
  for (const int p : layer.parameters) {
    const model::ParameterSpec& parameter = spec.parameters[p];
    if (!IsMatrix(parameter)) continue;
    m.widest = std::max({m.widest, parameter.shape[0], parameter.shape[1]});
    m.largest = std::max(m.largest, parameter.numel());
    m.outputs += parameter.shape[0];
  }
  for (const int p : layer.parameters)
    if (IsMatrix(spec.parameters[p]) && spec.parameters[p].shape[0] == m.widest) m.widest_outputs += m.widest;
  m.widest_outputs = std::max(m.widest_outputs, m.widest);  // where the widest extent is an input
  return m;
}

// Rounded and widened again: a bf16 copy and a wide one beside the original (nn/functions/gemm.h).
int64_t RoundedBytes(int64_t elements, model::Precision precision) {
  if (model::OperandBytes(precision) == model::WideBytes(precision)) return 0;
  return elements * (model::OperandBytes(precision) + model::WideBytes(precision));
}

class Replay {
 public:
  explicit Replay(const MemoryRequest& request)
      : q_(request),
        s_(request.schedule),
        effects_of_(request.schedule),
        arithmetic_(request.stack ? request.stack->arithmetic : OwnArithmetic(request.precision)),
        tensor_(request.stack ? request.stack->layout.tensor : 1) {
    PENSTOCK_CHECK_EQ(request.units.size(), s_.holders.units.size());
    PENSTOCK_CHECK_EQ(request.partition.stages(), s_.num_stages());
    for (int stage = 0; stage < s_.num_stages(); ++stage) stages_.push_back(SizesOf(stage));
    for (size_t u = 0; u < request.units.size(); ++u) parts_.push_back(PartsOf(request.units[u]));
  }

  RankMemory Run(int rank) {
    result_ = {};
    live_ = {};
    peak_workspace_ = 0;
    sums_.clear();
    inputs_.clear();
    HoldState(rank);
    AddChannels(s_.ranks[rank]);
    Note(0, {rank, 0});
    result_.before = live_;
    for (size_t i = 0; i < s_.ranks[rank].size(); ++i) {
      action_peak_ = Sum(live_);
      Step(rank, s_.ranks[rank][i], {rank, static_cast<int32_t>(i)});
      if (q_.trace) result_.trace.push_back({live_, action_peak_});
    }
    if (q_.stack) return result_;
    result_.cached = Sum(result_.peak_by_class) + peak_workspace_ - result_.step + result_.peak() / kRoundingDivisor;
    return result_;
  }

 private:
  StageSizes SizesOf(int stage) const {
    StageSizes sizes;
    const int first = q_.partition.first[stage], last = q_.partition.first[stage + 1];
    for (int l = first; l < last; ++l) {
      const LayerSpec& layer = q_.spec.layers[l];
      LayerSizes bytes;
      int64_t matrix = 0, vector = 0;
      for (const int p : layer.parameters) {
        const int64_t gradient = GradientBytes(q_.spec.parameters[p].numel());
        bytes.leaves += gradient;
        int64_t& largest = IsMatrix(q_.spec.parameters[p]) ? matrix : vector;
        largest = std::max(largest, gradient);
        if (Deferrable(layer) && IsMatrix(q_.spec.parameters[p])) bytes.deferred += gradient;
      }
      bytes.largest_leaf = matrix + vector;  // one product makes both
      const Matrices matrices = MatricesOf(q_.spec, layer);
      if (q_.stack) {
        sizes.layers.push_back(OnStack(l));
        sizes.saved += sizes.layers.back().saved;
        sizes.stash += sizes.layers.back().stash;
        continue;
      }
      bytes.saved = model::SavedBytes(layer, q_.samples, q_.length, q_.precision);
      bytes.stash = StashBytes(q_.spec, l, q_.samples, q_.length, q_.precision);
      bytes.workspace = WorkspaceBytes(q_.spec, l, q_.samples, q_.length, q_.precision);
      if (Deferrable(layer))  // others have no weight half: the table of the embedding is no operand
        bytes.weight_workspace = RoundedBytes(2 * q_.samples * q_.length * matrices.widest, q_.precision);
      sizes.saved += bytes.saved;
      sizes.stash += bytes.stash;
      sizes.layers.push_back(bytes);
    }
    int64_t later = 0;
    for (size_t l = sizes.layers.size(); l-- > 0; later += sizes.layers[l].saved)
      sizes.forward_workspace = std::max(sizes.forward_workspace, sizes.layers[l].workspace - later);
    if (stage + 1 < s_.num_stages())
      sizes.output = q_.stack ? StackBoundary(q_.spec.layers[last - 1])
                              : model::BoundaryBytes(q_.spec.layers[last - 1], q_.samples, q_.length, q_.precision);
    return sizes;
  }

  // Of the gradient of a unit: what an input half makes and what it leaves to the weight half.
  std::array<int64_t, 2> PartsOf(const model::ModelUnit& unit) const {
    const auto deferred = [&](int p) {
      return IsMatrix(q_.spec.parameters[p]) &&
             std::any_of(q_.spec.layers.begin(), q_.spec.layers.end(), [&](const LayerSpec& layer) {
               return Deferrable(layer) && std::count(layer.parameters.begin(), layer.parameters.end(), p) > 0;
             });
    };
    int64_t later = 0;
    for (const int p : unit.parameters)
      if (deferred(p)) later += q_.spec.parameters[p].numel();
    return {GradientBytes(unit.numel) - GradientBytes(later), GradientBytes(later)};
  }

  // Weight gradients go into the sum at once: no leaves.
  LayerSizes OnStack(int l) const {
    LayerSizes bytes;
    bytes.saved = model::StoredActivationBytes(q_.spec, l, q_.samples, q_.length, q_.stack->layout);
    const LayerSpec& layer = q_.spec.layers[l];
    if (Deferrable(layer))
      bytes.stash = (layer.saved_operands(q_.samples, q_.length) + layer.operands_in_saved(q_.samples, q_.length) +
                     q_.samples * q_.length * MatricesOf(q_.spec, layer).outputs) *
                    arithmetic_.activation_bytes / tensor_;
    return bytes;
  }
  int64_t StackBoundary(const LayerSpec& layer) const {
    int64_t elements = 0;
    for (const model::BoundaryTensor& tensor : layer.boundary) elements += tensor.numel(q_.samples, q_.length);
    return elements * arithmetic_.boundary_bytes / (q_.stack->layout.sequence_parallel ? tensor_ : 1);
  }

  int64_t HiddenBytes() const { return q_.samples * q_.length * q_.spec.hidden * model::WideBytes(q_.precision); }
  int64_t PerMember(int64_t elements) const { return (elements + tensor_ - 1) / tensor_; }
  int64_t GradientBytes(int64_t elements) const { return PerMember(elements) * arithmetic_.gradient_bytes; }
  int64_t WeightBytes(int64_t elements) const { return PerMember(elements) * arithmetic_.weight_bytes; }
  int64_t StateBytes(int64_t elements) const {
    return PerMember(elements) * (arithmetic_.master_bytes + q_.optimizer_states * arithmetic_.state_bytes);
  }

  int64_t& Live(BufferClass c) { return live_[static_cast<size_t>(c)]; }

  void HoldState(int rank) {
    int64_t largest = 0, all = 0;
    for (size_t u = 0; u < q_.units.size(); ++u) {
      const schedule::ParameterUnit& unit = s_.holders.units[u];
      if (q_.units[u].parameters.empty()) continue;
      const bool held = s_.HasRank(unit.group, rank);
      all += WeightBytes(q_.units[u].numel) + StateBytes(q_.units[u].numel);
      if (held) Live(BufferClass::parameter) += WeightBytes(q_.units[u].numel);
      if (held) Live(BufferClass::optimizer_state) += StateBytes(q_.units[u].numel);
      if (held)
        result_.snapshot +=
            (WeightBytes(q_.units[u].numel) + StateBytes(q_.units[u].numel)) / s_.group_size(unit.group);
      if (held || rank == 0)
        for (const int p : q_.units[u].parameters)
          largest = std::max(largest, WeightBytes(q_.spec.parameters[p].numel()));
    }
    // Whoever makes the tables first pays for them: every rank may be that one.
    if (!q_.stack) Live(BufferClass::parameter) += q_.spec.table_bytes;
    result_.persistent = Sum(live_);
    result_.snapshot = std::min(result_.snapshot, q_.snapshot);
    if (q_.checkpoints) result_.load_copy = largest;
    if (q_.final_state && rank == 0) result_.final_state = all + largest;
  }

  // The tensors of a message belong to both ends until the slower one lets go.
  void AddChannels(const std::vector<Action>& list) {
    std::set<std::pair<Kind, int32_t>> channels;
    int64_t largest = 0;
    for (const Action& action : list) {
      if (action.key.kind != Kind::send && action.key.kind != Kind::recv) continue;
      channels.insert({action.key.kind, action.peer_or_group});
      largest = std::max(largest, s_.sizes[action.bytes].upper_bound);
    }
    Live(BufferClass::message) = largest * static_cast<int64_t>(channels.size());
  }

  int64_t SizeOf(const BufferId& buffer) const {
    const auto& stage = [&]() -> const StageSizes& { return stages_[buffer.unit.stage]; };
    switch (buffer.slot) {
      case Slot::saved_graph:
        // A recomputed stage has outputs of its own: those of the forward are with the receiver.
        return stage().saved + (s_.stage_options[buffer.unit.stage].recompute ? stage().output : 0);
      case Slot::weight_stash:
        return stage().stash;
      case Slot::saved_inputs: {
        int64_t bytes = 0;
        for (const int e : s_.graph.inputs(buffer.unit.stage)) bytes += stages_[s_.graph.edges()[e].from].output;
        return bytes;
      }
      case Slot::boundary_gradient:
      case Slot::value:
        if (buffer.buffer_class == BufferClass::boundary) return stages_[s_.graph.edges()[buffer.part].from].output;
        return 0;  // gradients are counted by their sums, states from the start
      case Slot::loss:
      case Slot::norm:
      case Slot::gathered:
      case Slot::verdict:
        return 0;  // numbers, not tensors
    }
    return 0;
  }

  void Note(int64_t workspace, schedule::ActionRef where) {
    if (!q_.stack) workspace += kNumberBytes;
    const int64_t now = Sum(live_) + workspace;
    for (int c = 0; c < kBufferClassCount; ++c) result_.peak_by_class[c] = std::max(result_.peak_by_class[c], live_[c]);
    peak_workspace_ = std::max(peak_workspace_, workspace);
    action_peak_ = std::max(action_peak_, now);
    if (now <= result_.step) return;
    result_.step = now;
    result_.at_peak = live_;
    result_.workspace = workspace;
    result_.peak_at = where;
  }

  using HalfSums = std::array<GradientSums, 2>;  // of what input halves make, of what weight halves make

  BufferId SumsOf(schedule::UseRef use) const {
    return schedule::GradientBuffer(s_.holders.units[use.unit].unit, static_cast<int16_t>(use.use));
  }
  int64_t BytesOf(const HalfSums& sums, size_t unit) const {
    return sums[0].count() * parts_[unit][0] + sums[1].count() * parts_[unit][1];
  }
  void AddMicroBatch(HalfSums& sums, const Action& action) const {
    if (action.key.kind != Kind::backward_weight)
      sums[0].Add(action.key.micro_batch, s_.num_micro_batches(), q_.reproducible);
    if (action.key.kind != Kind::backward_input)
      sums[1].Add(action.key.micro_batch, s_.num_micro_batches(), q_.reproducible);
  }

  // Whether the sums of a stage grow when this micro-batch is added: one more node of the tree, or the first.
  bool SumsGrow(const Action& action) const {
    int64_t growth = 0;
    for (const schedule::UseRef use : effects_of_.uses(action.key.unit.stage)) {
      const auto it = sums_.find(SumsOf(use));
      HalfSums sums = it == sums_.end() ? HalfSums() : it->second;
      growth -= BytesOf(sums, use.unit);
      AddMicroBatch(sums, action);
      growth += BytesOf(sums, use.unit);
    }
    return growth > 0;
  }

  // Inside a backward: layer by layer from the last, the saved tensors (or deferred operands) go and the leaves come. A
  // weight half adds each leaf to its sum as soon as it is there, so what stays of the leaves is what the sums grow by.
  void NoteBackward(const Action& action, schedule::ActionRef where) {
    const StageSizes& stage = stages_[action.key.unit.stage];
    const BytesByClass before = live_;
    const bool input_half = action.key.kind == Kind::backward_input,
               weight_half = action.key.kind == Kind::backward_weight;
    int64_t gone = 0, leaves = 0, stashed = 0;
    const bool grows = weight_half && !q_.stack && SumsGrow(action);
    const auto note = [&](int64_t workspace) {
      Live(BufferClass::activation) = before[static_cast<size_t>(BufferClass::activation)] - gone + stashed;
      Live(BufferClass::gradient) = before[static_cast<size_t>(BufferClass::gradient)] + leaves;
      Note(workspace, where);
    };
    for (size_t l = stage.layers.size(); l-- > 0;) {
      const LayerSizes& layer = stage.layers[l];
      const int64_t own = weight_half ? layer.deferred : input_half ? layer.leaves - layer.deferred : layer.leaves;
      // An input half also holds what it defers: gradients of outputs, before the tensors they replace go.
      const int64_t workspace = weight_half               ? layer.weight_workspace
                                : input_half && !q_.stack ? layer.workspace + 4 * HiddenBytes()
                                                          : layer.workspace;
      const int64_t kept = weight_half ? layer.stash : layer.saved;
      // Kept tensors go as leaves come: at first all that is kept with one leaf, at last all leaves with what the first
      // operations of the layer kept.
      const int64_t before_layer = leaves, one = std::min(own, layer.largest_leaf);
      leaves = before_layer + one;
      note(workspace);
      leaves = before_layer + (weight_half && !grows ? one : own);
      gone += kept - kept / kFirstOperations;
      note(workspace);
      gone += kept / kFirstOperations;
      if (input_half) stashed += layer.stash;  // its operands were among the saved tensors
      note(0);
      if (weight_half && !grows) leaves = before_layer;
    }
    live_ = before;
  }

  void AddLeaves(const Action& action) {
    for (const schedule::UseRef use : effects_of_.uses(action.key.unit.stage)) {
      HalfSums& sums = sums_[SumsOf(use)];
      Live(BufferClass::gradient) -= BytesOf(sums, use.unit);
      AddMicroBatch(sums, action);
      Live(BufferClass::gradient) += BytesOf(sums, use.unit);
    }
  }

  void FreeGradient(const BufferId& buffer) {
    const auto it = sums_.find(buffer);
    if (it == sums_.end()) return;
    Live(BufferClass::gradient) -= BytesOf(it->second, buffer.unit.stage);
    sums_.erase(it);
  }

  // A gradient that appears without micro-batches (a holder that had none, a total over uses) is one tensor.
  void TouchGradient(const BufferId& buffer) {
    HalfSums& sums = sums_[buffer];
    for (size_t half = 0; half < sums.size(); ++half) {
      if (sums[half].count() > 0) continue;
      sums[half].Add(0, 1, /*tree=*/false);
      Live(BufferClass::gradient) += parts_[buffer.unit.stage][half];
    }
  }

  void Step(int rank, const Action& action, schedule::ActionRef where) {
    effects_.clear();
    effects_of_.Append(rank, action, effects_);
    if (schedule::HalvesOf(action.key.kind) != schedule::kNoHalf) {
      NoteBackward(action, where);
      ReplaceBuffers(/*leaves_follow=*/true);
      AddLeaves(action);
      Note(0, where);
      return;
    }
    if (action.key.kind == Kind::forward && inputs_.insert(action.key.micro_batch).second)
      Live(BufferClass::activation) += kTokenBytes * q_.samples * q_.length;
    ReplaceBuffers(/*leaves_follow=*/false);
    Note(schedule::IsComputeKind(action.key.kind) ? stages_[action.key.unit.stage].forward_workspace : 0, where);
  }

  // What is freed goes first: the boundary that a forward consumes is the input that it keeps, the total over the uses
  // of a parameter is the sum of its first use, a sent tensor is the other rank's.
  void ReplaceBuffers(bool leaves_follow) {
    for (const schedule::Effect& effect : effects_) {
      if (effect.access != Access::free) continue;
      if (effect.buffer.buffer_class == BufferClass::gradient) {
        FreeGradient(effect.buffer);
      } else {
        Live(effect.buffer.buffer_class) -= SizeOf(effect.buffer);
      }
    }
    for (const schedule::Effect& effect : effects_) {
      if (effect.access != Access::allocate && effect.access != Access::accumulate) continue;
      if (effect.buffer.buffer_class != BufferClass::gradient) {
        Live(effect.buffer.buffer_class) += SizeOf(effect.buffer);
      } else if (!leaves_follow) {
        TouchGradient(effect.buffer);
      }
    }
  }

  const MemoryRequest& q_;
  const schedule::Schedule& s_;
  const schedule::EffectLister effects_of_;
  const Arithmetic arithmetic_;
  const int64_t tensor_;  // members of a cell: each holds its part
  std::vector<StageSizes> stages_;
  RankMemory result_;
  BytesByClass live_{};
  int64_t peak_workspace_ = 0, action_peak_ = 0;
  std::set<int32_t> inputs_;  // micro-batches whose tokens and labels are here until the end of the step
  std::vector<std::array<int64_t, 2>> parts_;  // [unit]
  std::map<BufferId, HalfSums> sums_;
  std::vector<schedule::Effect> effects_;
};

}  // namespace

int64_t RankMemory::peak() const {
  return std::max({step + snapshot, persistent + load_copy, persistent + final_state});
}

std::string RankMemory::LargestPart() const {
  const auto largest = std::max_element(at_peak.begin(), at_peak.end());
  if (*largest < workspace) return "workspace";
  return std::string(Name(static_cast<BufferClass>(largest - at_peak.begin())));
}

int64_t MemoryEstimate::machine() const {
  int64_t sum = process;
  for (const RankMemory& rank : ranks) sum += rank.total();
  return sum;
}

int MemoryEstimate::largest_rank() const {
  const auto largest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const RankMemory& a, const RankMemory& b) { return a.total() < b.total(); });
  return static_cast<int>(largest - ranks.begin());
}

MemoryEstimate EstimateMemory(const MemoryRequest& request) {
  Replay replay(request);
  MemoryEstimate estimate;
  for (int rank = 0; rank < request.schedule.num_ranks(); ++rank) estimate.ranks.push_back(replay.Run(rank));
  estimate.process = request.stack ? 0 : kProcessBytes;
  return estimate;
}

// Counted per token, from what the layers of nn make (nn/gpt.cc):
//   chunked loss   a chunk of logits and as much again for its log-sum-exp or its rounded gradient
//   products       at the start of a backward the gradient of the output, and those of what the widest matrices made
//                  (one for fc1, two for gate and up; the gradient of the activation itself replaces the kept operand
//                  of the last product), later more but with less kept; in bf16 the rounded weight, the rounded
//                  gradient, and the kept operand widened
//   attention      with kept scores three more of their size
//   other          two tensors of the hidden size
int64_t WorkspaceBytes(const model::ModelSpec& spec, int index, int64_t samples, int64_t length,
                       model::Precision precision) {
  const LayerSpec& layer = spec.layers[index];
  const int64_t wide = model::WideBytes(precision), tokens = samples * length, hidden = 2 * tokens * spec.hidden * wide;
  const Matrices matrices = MatricesOf(spec, layer);
  if (layer.workspace > 0) {
    const int64_t chunk = std::min(layer.workspace, tokens * spec.vocabulary);
    return chunk * wide + std::max(chunk * wide, RoundedBytes(chunk, precision)) +
           RoundedBytes(matrices.largest, precision) + hidden;
  }
  if (layer.forward_flops(1, 1) == 0) return hidden;
  const int64_t widened = model::OperandBytes(precision) == wide ? 0 : tokens * matrices.widest * wide;
  return tokens * matrices.widest_outputs * wide + widened + hidden / 2 +
         RoundedBytes(matrices.largest + tokens * matrices.widest, precision) +
         3 * samples * length * length * layer.saved.per_token_pair * wide;
}

int64_t StashBytes(const model::ModelSpec& spec, int index, int64_t samples, int64_t length,
                   model::Precision precision) {
  const LayerSpec& layer = spec.layers[index];
  if (!Deferrable(layer)) return 0;
  const int64_t operands = layer.saved_operands(samples, length) + layer.operands_in_saved(samples, length);
  return operands * model::OperandBytes(precision) +
         samples * length * MatricesOf(spec, layer).outputs * model::WideBytes(precision);
}

}  // namespace penstock::cost
