// src/model/gpt.h
//
// Decoder-only transformers, one config for both families.
//   gpt2   Radford et al. 2019: pre-LayerNorm, biases, GELU (tanh), learned positions, q, k, v in one matrix.
//   llama  Touvron et al. 2023: pre-RMSNorm, no biases, RoPE (Su et al. 2021), SwiGLU, grouped-query attention
//          (Ainslie et al. 2023).
// Chain: "embed" (token, and for gpt2 position), "blocks.0" .. "blocks.L-1", "head" (final norm, lm head, loss).
// Initialisation as published for GPT-2: normal(init_std), residual projections init_std / sqrt(2 L).
#pragma once

#include <cstdint>
#include <string>

#include "model/spec.h"

namespace penstock::model {

// Upper bounds, with which no count of parameters, or of flops of a token, leaves 63 bits.
inline constexpr int64_t kMaxLayers = 65536;
inline constexpr int64_t kMaxHidden = 1 << 20;  // heads too
inline constexpr int64_t kMaxFfn = 1 << 22;
inline constexpr int64_t kMaxVocabulary = 1 << 26;
inline constexpr int64_t kMaxContext = 1 << 24;

struct GptConfig {
  std::string family = "gpt2";  // gpt2 | llama
  int64_t layers = 4;
  int64_t hidden = 128;
  int64_t heads = 4;
  int64_t kv_heads = 0;  // llama; 0: as many as heads
  int64_t ffn = 0;       // width of the feed-forward; 0: 4 hidden (gpt2), 8/3 hidden rounded up to 8 (llama)
  int64_t vocabulary = 256;
  int64_t context = 256;
  bool tied = true;                // head shares the token embedding
  double dropout = 0.0;            // after the embedding and on both residual branches
  double attention_dropout = 0.0;  // on attention probabilities; needs attention = "reference"
  double norm_eps = 1e-5;
  double rope_base = 10000.0;  // llama, as the next five
  // Slower rotation for contexts longer than the model was trained for. linear: all angles over rope_factor (Chen et
  // al. 2023). llama3: angles whose wavelength is above rope_original_context / rope_low_frequency over rope_factor,
  // those below rope_original_context / rope_high_frequency unchanged, between them in proportion (Dubey et al. 2024).
  std::string rope_scaling = "none";  // none | linear | llama3
  double rope_factor = 1.0;
  double rope_low_frequency = 1.0;
  double rope_high_frequency = 4.0;
  int64_t rope_original_context = 8192;
  double init_std = 0.02;
  std::string attention = "fused";  // fused | reference
  int64_t loss_chunk = 128;         // rows of logits alive at once in the loss

  int64_t head_dim() const { return hidden / heads; }
};

// Fills the defaults that depend on others (kv_heads, ffn) and checks; UserError names the key and what would work.
GptConfig ResolveGptConfig(GptConfig config);

// Spec of the resolved config. ModelSpec::config holds the resolved GptConfig.
ModelSpec BuildGptSpec(const GptConfig& config);

}  // namespace penstock::model
