// Bytes of activations against the closed formulas and the tables of Korthikanti et al. 2023.
#include "model/activation_bytes.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/registry.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

GptConfig PaperConfig(int64_t hidden, int64_t heads) {
  return {.family = "gpt2",
          .layers = 2,
          .hidden = hidden,
          .heads = heads,
          .dropout = 0.1,
          .attention_dropout = 0.1,
          .attention = "reference"};
}

const BlockShape kGpt3{.length = 2048, .samples = 1, .hidden = 12288, .heads = 96, .tensor = 8};
const BlockShape kNlg{.length = 2048, .samples = 1, .hidden = 20480, .heads = 128, .tensor = 8};

TEST(ActivationBytes, TableAddsUpToEveryClosedFormula) {
  int shapes = 0;
  for (const int64_t heads : {8, 16, 96})
    for (const int64_t head_dim : {16, 64, 128})
      for (const int64_t length : {16, 512, 2048})
        for (const int64_t samples : {1, 3})
          for (const int64_t t : {1, 2, 4, 8}) {
            const BlockShape x{length, samples, heads * head_dim, heads, t};
            const GptConfig config = PaperConfig(x.hidden, heads);
            const auto stored = [&](bool sequence_parallel, Recompute recompute) {
              return StoredActivationBytes(config, samples, length, {t, sequence_parallel, recompute});
            };
            EXPECT_EQ(stored(false, Recompute::none), TensorParallelBytes(x));
            EXPECT_EQ(stored(true, Recompute::none), SequenceParallelBytes(x));
            EXPECT_EQ(stored(false, Recompute::selective), SelectiveBytes(x));
            EXPECT_EQ(stored(true, Recompute::selective), SequenceParallelSelectiveBytes(x));
            EXPECT_EQ(stored(false, Recompute::full), FullRecomputeBytes(x));
            EXPECT_EQ(stored(true, Recompute::full) * t, FullRecomputeBytes(x));
            if (t == 1) {
              EXPECT_EQ(stored(false, Recompute::none), UnsplitBytes(x));
            }
            ++shapes;
          }
  EXPECT_EQ(shapes, 216);
}

TEST(ActivationBytes, FormulasAsPrinted) {
  // GPT-3: 5 a s / h = 80, so a block without recomputation keeps 114 s b h, 70 % of it in the core of attention.
  const int64_t sbh = 2048 * 12288;
  EXPECT_EQ(UnsplitBytes(kGpt3), 114 * sbh);
  EXPECT_EQ(TensorParallelBytes(kGpt3), 10 * sbh + 13 * sbh);
  EXPECT_EQ(SequenceParallelBytes(kGpt3), 114 * sbh / 8);
  EXPECT_EQ(SelectiveBytes(kGpt3), 13 * sbh);
  EXPECT_EQ(SequenceParallelSelectiveBytes(kGpt3), 34 * sbh / 8);
  EXPECT_EQ(FullRecomputeBytes(kGpt3), 2 * sbh);
  // MT-NLG 530B: 64.
  EXPECT_EQ(UnsplitBytes(kNlg), 98 * 2048 * int64_t{20480});
}

TEST(ActivationBytes, GroupsOfTheTable) {
  // s = b = 1, h = 1000: attention 11 s b h, feed-forward 19, norms 4; the scores 5 a s^2 b beside.
  const std::vector<KeptTensor> kept = KeptByBlock(PaperConfig(1000, 10));
  EXPECT_EQ(kept.size(), 14u);
  int64_t norms = 0, feed_forward = 0, attention = 0, scores = 0, replicated = 0;
  for (const KeptTensor& tensor : kept) {
    const int64_t bytes = 2 * tensor.data.per_token + tensor.masks.per_token;
    scores += 2 * tensor.data.per_token_pair + tensor.masks.per_token_pair;
    if (!tensor.split) replicated += bytes;
    EXPECT_EQ(tensor.selective, tensor.data.per_token_pair + tensor.masks.per_token_pair > 0) << tensor.name;
    if (tensor.name.starts_with("norm")) {
      norms += bytes;
    } else if (tensor.name.starts_with("feed-forward") || tensor.name.starts_with("activation")) {
      feed_forward += bytes;
    } else {
      attention += bytes;
    }
  }
  EXPECT_EQ(norms, 4 * 1000);
  EXPECT_EQ(feed_forward, 19 * 1000);
  EXPECT_EQ(attention, 11 * 1000);
  EXPECT_EQ(scores, 5 * 10);
  EXPECT_EQ(replicated, 10 * 1000);
}

TEST(ActivationBytes, Fp32KeepsBytesForMasks) {
  const int64_t b = 2, s = 512, h = 256, a = 8;
  EXPECT_EQ(StoredActivationBytes(PaperConfig(h, a), b, s, {.element_bytes = 4}), 66 * s * b * h + 9 * a * s * s * b);
}

TEST(ActivationBytes, WithoutDropoutThereAreNoMasks) {
  GptConfig config = PaperConfig(256, 8);
  config.dropout = config.attention_dropout = 0;
  const int64_t s = 128, h = 256;
  EXPECT_EQ(StoredActivationBytes(config, 1, s, {}), 32 * s * h + 2 * 8 * s * s);
}

TEST(ActivationBytes, FusedAttentionKeepsNoScores) {
  GptConfig config = PaperConfig(256, 8);
  config.attention_dropout = 0;
  config.attention = "fused";
  const int64_t s = 128, h = 256;
  EXPECT_EQ(StoredActivationBytes(config, 1, s, {}), 34 * s * h + 4 * 8 * s);
  EXPECT_EQ(StoredActivationBytes(config, 1, s, {.recompute = Recompute::selective}), 34 * s * h);
}

TEST(ActivationBytes, LlamaWithGroupedQueries) {
  const GptConfig config{.family = "llama", .hidden = 512, .heads = 8, .kv_heads = 2, .ffn = 1376};
  const int64_t s = 64, h = 512, kv = 128, f = 1376;
  // Replicated: both norm inputs and outputs. Split: q, k, v, attention's output; gate, up and their product.
  const int64_t replicated = 2 * 4 * h * s, split = (2 * (2 * h + 2 * kv + 3 * f) + 4 * 8) * s;
  EXPECT_EQ(StoredActivationBytes(config, 1, s, {}), replicated + split);
  EXPECT_EQ(StoredActivationBytes(config, 1, s, {.tensor = 2}), replicated + split / 2);
  EXPECT_EQ(StoredActivationBytes(config, 1, s, {.tensor = 2, .sequence_parallel = true}), (replicated + split) / 2);
}

TEST(ActivationBytes, LayersOfASpec) {
  const ModelSpec spec = Registry<CatalogueEntry>::Find("gpt-22b").build();
  const BlockShape x{.length = 2048, .samples = 4, .hidden = 6144, .heads = 64, .tensor = 8};
  const ActivationLayout layout{.tensor = 8, .sequence_parallel = true, .recompute = Recompute::selective};
  int64_t sum = 0;
  for (int layer = 0; layer < static_cast<int>(spec.layers.size()); ++layer)
    sum += StoredActivationBytes(spec, layer, 4, 2048, layout);
  EXPECT_EQ(sum, 48 * SequenceParallelSelectiveBytes(x) + FirstStageExtraBytes(x, 51200, 1, true));
}

TEST(ActivationBytes, OtherFamiliesByTheirSavedSizes) {
  const ModelSpec bert = Registry<CatalogueEntry>::Find("bert-base").build();
  // 16 s h + a s^2, and four fp32 statistics per token.
  EXPECT_EQ(StoredActivationBytes(bert, 1, 1, 512, {}), 2 * 9'437'184 + 4 * 4 * 512);
  EXPECT_EQ(StoredActivationBytes(bert, 1, 1, 512, {.recompute = Recompute::selective}),
            2 * 16 * 512 * 768 + 4 * 4 * 512);
  EXPECT_EQ(StoredActivationBytes(bert, 1, 1, 512, {.recompute = Recompute::full}), 2 * 512 * 768);
  EXPECT_THROW(StoredActivationBytes(bert, 1, 1, 512, {.tensor = 2}), UserError);
}

TEST(ActivationBytes, WholeModelFactors) {
  // 1F1B: L layers' worth on the first rank, (p - i) / p of it on rank i.
  EXPECT_EQ(HeldShare(8, 1, 64, 0), Rational(1));
  EXPECT_EQ(HeldShare(8, 1, 64, 5), Rational(3, 8));
  // Fewer micro-batches than ranks: n / p.
  EXPECT_EQ(HeldShare(8, 1, 3, 0), Rational(3, 8));
  // Interleaving: 1 + (p - 1) / (p m).
  for (const int64_t p : {2, 4, 8})
    for (const int64_t m : {2, 3, 5})
      EXPECT_EQ(HeldShare(p, m, 4 * p, 0), Rational(1) + Rational(p - 1, p * m)) << p << " " << m;
  EXPECT_EQ(HeldShare(4, 1, 2, 3), Rational(1, 4));
  EXPECT_EQ(HeldShare(1, 1, 1, 0), Rational(1));
}

TEST(ActivationBytes, FirstStageBesideItsBlocks) {
  const int64_t sbh = 2048 * 12288;
  EXPECT_EQ(FirstStageExtraBytes(kGpt3, 51200, 8, true), sbh * 8 / 8);
  EXPECT_EQ(FirstStageExtraBytes(kGpt3, 51200, 8, false), sbh * 8);
  // p = 1: (s b h / t)(1 + 4 (1 + v / h))
  EXPECT_EQ(FirstStageExtraBytes(kGpt3, 51200, 1, true), (5 * sbh + 4 * int64_t{2048} * 51200) / 8);
}

TEST(ActivationBytes, GroupsThatDoNotDivideAreRefused) {
  EXPECT_THROW(TensorParallelBytes({.length = 128, .samples = 1, .hidden = 96, .heads = 6, .tensor = 4}), UserError);
  EXPECT_THROW(SequenceParallelBytes({.length = 127, .samples = 1, .hidden = 96, .heads = 6, .tensor = 2}), UserError);
  EXPECT_THROW(StoredActivationBytes(PaperConfig(96, 6), 1, 128, {.tensor = 4}), UserError);
  try {
    StoredActivationBytes(PaperConfig(96, 6), 1, 128, {.tensor = 4});
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("heads = 6"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace penstock::model
