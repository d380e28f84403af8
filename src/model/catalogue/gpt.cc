// Decoders of the catalogue. All are configs of model/gpt.h.
#include "model/gpt.h"

#include <string>
#include <utility>

#include "base/registry.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

struct Size {
  const char* name;
  int64_t layers, hidden, heads;
  double published;  // parameters
  double tolerance;  // half a unit of the last published digit, as a share
};

void Add(std::string name, std::string summary, std::string source, const GptConfig& config, double published = 0,
         double tolerance = 0) {
  Registry<CatalogueEntry>::Add({.name = std::move(name),
                                 .summary = std::move(summary),
                                 .source = std::move(source),
                                 .sample = {config.context},
                                 .length = config.context,
                                 .published_parameters = published,
                                 .published_tolerance = tolerance,
                                 .build = [config] { return BuildGptSpec(config); }});
}

GptConfig Gpt2(int64_t layers, int64_t hidden, int64_t heads, int64_t vocabulary, int64_t context) {
  return {.family = "gpt2",
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .vocabulary = vocabulary,
          .context = context};
}

GptConfig Llama(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t ffn, int64_t vocabulary,
                int64_t context) {
  return {.family = "llama",
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .ffn = ffn,
          .vocabulary = vocabulary,
          .context = context,
          .tied = false};
}

// The measurements of both Megatron-LM papers were made without fused attention and with dropout everywhere.
GptConfig Megatron(const Size& size) {
  GptConfig config = Gpt2(size.layers, size.hidden, size.heads, 51200, 2048);
  config.attention = "reference";
  config.dropout = 0.1;
  config.attention_dropout = 0.1;
  return config;
}

// Table 2.1. Its XL has 24 heads of 128 in 2048 and its 13B a width of 5140 in 40 heads of 128: neither is possible, so
// these are the 16 heads and the 5120 that everybody builds.
constexpr Size kGpt3[] = {
    {"gpt3-small", 12, 768, 12, 125e6, 0.004},  {"gpt3-medium", 24, 1024, 16, 350e6, 0.02},
    {"gpt3-large", 24, 1536, 16, 760e6, 0.007}, {"gpt3-xl", 24, 2048, 16, 1.3e9, 0.04},
    {"gpt3-2.7b", 32, 2560, 32, 2.7e9, 0.02},   {"gpt3-6.7b", 32, 4096, 32, 6.7e9, 0.008},
    {"gpt3-13b", 40, 5120, 40, 13.0e9, 0.04},   {"gpt3-175b", 96, 12288, 96, 175e9, 0.003},
};

constexpr Size kNarayanan[] = {
    {"gpt-1.7b", 24, 2304, 24, 1.7e9, 0.03},        {"gpt-3.6b", 30, 3072, 32, 3.6e9, 0.014},
    {"gpt-7.5b", 36, 4096, 32, 7.5e9, 0.007},       {"gpt-18.4b", 40, 6144, 48, 18.4e9, 0.003},
    {"gpt-39.1b", 48, 8192, 64, 39.1e9, 0.0013},    {"gpt-76.1b", 60, 10240, 80, 76.1e9, 0.0007},
    {"gpt-145.6b", 80, 12288, 96, 145.6e9, 0.0004}, {"gpt-310.1b", 96, 16384, 128, 310.1e9, 0.0002},
    {"gpt-529.6b", 105, 20480, 128, 529.6e9, 1e-4}, {"gpt-1008b", 128, 25600, 160, 1008.0e9, 5e-5},
};

constexpr Size kKorthikanti[] = {
    {"gpt-22b", 48, 6144, 64, 22e9, 0.023},
    {"gpt-175b", 96, 12288, 96, 175e9, 0.003},
    {"gpt-530b", 105, 20480, 128, 530e9, 0.001},
    {"gpt-1t", 128, 25600, 160, 1e12, 0.01},
};

const bool kRegistered = [] {
  const std::string radford = "Radford et al., Language models are unsupervised multitask learners, 2019";
  Add("gpt2-small", "GPT-2, 124M", radford, Gpt2(12, 768, 12, 50257, 1024));
  Add("gpt2-medium", "GPT-2, 355M", radford, Gpt2(24, 1024, 16, 50257, 1024));
  const std::string touvron = "Touvron et al., Llama 2: open foundation and fine-tuned chat models, 2023";
  Add("llama-2-7b", "Llama 2, 7B", touvron, Llama(32, 4096, 32, 32, 11008, 32000, 4096));
  Add("llama-2-13b", "Llama 2, 13B", touvron, Llama(40, 5120, 40, 40, 13824, 32000, 4096));
  Add("llama-2-70b", "Llama 2, 70B, grouped-query attention", touvron, Llama(80, 8192, 64, 8, 28672, 32000, 4096));
  for (const Size& size : kGpt3)
    Add(size.name, "GPT-3 family", "Brown et al., NeurIPS 2020, table 2.1",
        Gpt2(size.layers, size.hidden, size.heads, 50257, 2048), size.published, size.tolerance);
  for (const Size& size : kNarayanan)
    Add(size.name, "GPT of the weak scaling study", "Narayanan et al., SC 2021, table 1", Megatron(size),
        size.published, size.tolerance);
  for (const Size& size : kKorthikanti)
    Add(size.name, "GPT of the activation recomputation study", "Korthikanti et al., MLSys 2023, table 3",
        Megatron(size), size.published, size.tolerance);
  Add("gpt-tiny", "GPT-2 style, bytes, for a CPU", "stand-in", Gpt2(4, 128, 4, 256, 128));
  Add("llama-tiny", "Llama style, bytes, for a CPU", "stand-in", Llama(4, 128, 4, 4, 344, 256, 128));
  return true;
}();

}  // namespace
}  // namespace penstock::model
