// src/model/activation_bytes.h
//
// Bytes of activations that a transformer keeps for the backward on a stack as the field runs it: 16-bit activations,
// 1-byte dropout masks, fp32 logits; biases, activations and residuals fused; Megatron-LM's tensor parallelism with
// and without sequence parallelism. This is not what our own executor keeps: that is model::SavedBytes (fp32
// activations, masks computed again). Source: Korthikanti et al., Reducing activation recomputation in large
// transformer models, MLSys 2023, sections 4, 5.
//   s = length, b = samples of a micro-batch, h = hidden, a = heads, t = size of the tensor-parallel group, v =
//   vocabulary, L = layers, p = pipeline ranks, m = chunks per rank, n = micro-batches. All sizes are per rank.
// Errors: UserError where t does not divide what it splits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/rational.h"
#include "model/gpt.h"
#include "model/spec.h"

namespace penstock::model {

enum class Recompute : uint8_t {
  none,
  selective,  // the core of attention: softmax, its dropout, and what they feed
  full,       // every block keeps its input only
};

// --- Closed formulas: per block, feed-forward 4 h, biases, dropout everywhere, probabilities kept ---

struct BlockShape {
  int64_t length = 0, samples = 0, hidden = 0, heads = 0;
  int64_t tensor = 1;
};

int64_t UnsplitBytes(const BlockShape& x);                    // s b h (34 + 5 a s / h)
int64_t TensorParallelBytes(const BlockShape& x);             // s b h (10 + 24 / t + 5 a s / (h t))
int64_t SequenceParallelBytes(const BlockShape& x);           // s b h / t (34 + 5 a s / h)
int64_t SelectiveBytes(const BlockShape& x);                  // s b h (10 + 24 / t)
int64_t SequenceParallelSelectiveBytes(const BlockShape& x);  // 34 s b h / t
int64_t FullRecomputeBytes(const BlockShape& x);              // 2 s b h

// --- Tensor by tensor, for any config ---

struct KeptTensor {
  std::string name{};
  SizeFormula data{};        // elements of the activations' width
  SizeFormula masks{};       // bytes
  SizeFormula statistics{};  // fp32 elements
  bool selective = false;    // selective recomputation does not keep it
  bool split = false;        // 1/t of it on every member of the group; the others only under sequence parallelism
};

// What a block keeps, without parallelism. Statistics of norms are left out, as in the paper. With fused attention the
// log-sum-exp is kept in place of probabilities. A SwiGLU keeps both its inputs and computes silu again.
std::vector<KeptTensor> KeptByBlock(const GptConfig& config);
// Dropout mask of the embedding.
std::vector<KeptTensor> KeptByEmbed(const GptConfig& config);
// Inputs of the final norm and of the language model head, fp32 logits.
std::vector<KeptTensor> KeptByHead(const GptConfig& config);

struct ActivationLayout {
  int64_t tensor = 1;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  int64_t element_bytes = 2;
};

// Of one block. Full recomputation keeps the block's input: s b h elements, under sequence parallelism 1/t of them.
int64_t StoredActivationBytes(const GptConfig& config, int64_t samples, int64_t length, const ActivationLayout& layout);

// Of any layer of a spec. Families other than GPTs are counted by their saved sizes (LayerSpec), all of the
// activations' width and statistics fp32; selective recomputation leaves out what grows with the square of the length;
// full recomputation keeps the input of a repeated layer. They have no split: `tensor` must be 1.
int64_t StoredActivationBytes(const ModelSpec& spec, int layer, int64_t samples, int64_t length,
                              const ActivationLayout& layout);

// --- The whole model ---

// What rank i of p holds at its peak, as a share of L layers times one micro-batch. 1F1B: min(n, p - i) / p.
// Interleaved with m > 1 chunks: min(n m, 2 (p - 1 - i) + (m - 1) p + 1) / (p m), which on rank 0 is 1 + (p - 1) / (p
// m).
Rational HeldShare(int64_t pipeline, int64_t chunks, int64_t micro_batches, int64_t rank);

// On rank 0 beside its blocks, with n >= p: the embedding's masks of p micro-batches, and with p = 1 the final norm's
// input, the head's input and the logits: (s b h L / t)(p / L + [p = 1] (4 / L)(1 + v / h)) under sequence parallelism.
// Without it masks and inputs are not split; the logits are.
int64_t FirstStageExtraBytes(const BlockShape& x, int64_t vocabulary, int64_t pipeline, bool sequence_parallel);

}  // namespace penstock::model
