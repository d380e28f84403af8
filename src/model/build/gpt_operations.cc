#include "model/build/gpt_operations.h"

#include "model/build/operations.h"
#include "model/build/spec_writer.h"

namespace penstock::model {

std::vector<Operation> EmbedOperations(const GptConfig& config) {
  const int64_t h = config.hidden;
  std::vector<Operation> ops;
  // Rows in, rows out. The backward adds rows to the gradient of the table: reads both, writes one. Every member of a
  // tensor-parallel group writes the whole width (zeros for words of others), and the sum has no counterpart in the
  // backward: nothing comes before it.
  ops.push_back(Moving("token", PerToken(2 * h), 1.5, TensorSplit::replicated));
  ops.push_back(TensorReduce("token.reduce", PerToken(h), 0));
  const bool dropout = config.dropout > 0;
  if (config.family == "gpt2") {
    // Reads both, writes the sum (dropout in the same pass); the backward reads the gradient and adds it to the rows.
    ops.push_back(Moving("position", PerToken(3 * h), dropout ? 4.0 / 3 : 2.0 / 3, TensorSplit::replicated));
  } else if (dropout) {
    ops.push_back(Moving("dropout", PerToken(2 * h), 1, TensorSplit::replicated));
  }
  return ops;
}

std::vector<Operation> BlockOperations(const GptConfig& config) {
  const bool gpt2 = config.family == "gpt2", dropout = config.dropout > 0;
  const int64_t h = config.hidden, f = config.ffn, kv = config.kv_heads * config.head_dim();
  const SizeFormula token = PerToken(1);
  std::vector<Operation> ops;
  ops.push_back(NormOperation("norm1", h, gpt2));
  if (gpt2) {
    ops.push_back(Gemm("attn.qkv", token, h, 3 * h, true));
  } else {
    ops.push_back(Gemm("attn.q", token, h, h, false));
    ops.push_back(Gemm("attn.k", token, h, kv, false));
    ops.push_back(Gemm("attn.v", token, h, kv, false));
    ops.push_back(Moving("attn.rope", PerToken(2 * (h + kv)), 1, TensorSplit::split));
    // Keys and values once per query head, as the saved sizes have them too.
    if (kv != h) ops.push_back(Moving("attn.expand", PerToken(2 * (kv + h)), 1, TensorSplit::split));
  }
  AddAttentionCore(ops, {.hidden = h,
                         .heads = config.heads,
                         .fused = config.attention == "fused",
                         .dropout = config.attention_dropout > 0});
  ops.push_back(Gemm("attn.proj", token, h, h, gpt2));
  ops.push_back(TensorReduce("attn.reduce", PerToken(h)));
  ops.push_back(ResidualOperation("attn.residual", h, dropout));
  ops.push_back(NormOperation("norm2", h, gpt2));
  if (gpt2) {
    ops.push_back(Gemm("mlp.fc1", token, h, f, true));
    ops.push_back(Moving("mlp.activation", PerToken(2 * f), 1.5, TensorSplit::split));
    ops.push_back(Gemm("mlp.fc2", token, f, h, true));
  } else {
    ops.push_back(Gemm("mlp.gate", token, h, f, false));
    ops.push_back(Gemm("mlp.up", token, h, f, false));
    // Two in, one out; the backward reads those two and a gradient, writes two.
    ops.push_back(Moving("mlp.activation", PerToken(3 * f), 5.0 / 3, TensorSplit::split));
    ops.push_back(Gemm("mlp.down", token, f, h, false));
  }
  ops.push_back(TensorReduce("mlp.reduce", PerToken(h)));
  ops.push_back(ResidualOperation("mlp.residual", h, dropout));
  return ops;
}

std::vector<Operation> HeadOperations(const GptConfig& config) {
  const int64_t h = config.hidden, v = config.vocabulary;
  std::vector<Operation> ops;
  ops.push_back(NormOperation("norm", h, config.family == "gpt2"));
  ops.push_back(Gemm("lm", PerToken(1), h, v, false));
  // Largest logit and sum of exponentials in one pass; the backward reads the logits and writes their gradient.
  ops.push_back(Moving("loss", PerToken(v), 2, TensorSplit::split));
  // Forward: largest, sum and the label's logit of every token. Backward: the gradient of what all members multiplied.
  ops.push_back(TensorReduce("loss.reduce", PerToken(3), static_cast<double>(h) / 3));
  return ops;
}

}  // namespace penstock::model
