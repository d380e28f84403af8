#include "huggingface/names.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "model/gpt.h"

namespace penstock::huggingface {
namespace {

struct Rule {
  const char* theirs;
  bool transposed = false;
};
using Rules = std::map<std::string, Rule, std::less<>>;

// By our name without "blocks.N.".
const Rules& Gpt2Block() {
  static const Rules rules = {
      {"norm1.weight", {"ln_1.weight"}},
      {"norm1.bias", {"ln_1.bias"}},
      {"attn.qkv.weight", {"attn.c_attn.weight", true}},
      {"attn.qkv.bias", {"attn.c_attn.bias"}},
      {"attn.proj.weight", {"attn.c_proj.weight", true}},
      {"attn.proj.bias", {"attn.c_proj.bias"}},
      {"norm2.weight", {"ln_2.weight"}},
      {"norm2.bias", {"ln_2.bias"}},
      {"mlp.fc1.weight", {"mlp.c_fc.weight", true}},
      {"mlp.fc1.bias", {"mlp.c_fc.bias"}},
      {"mlp.fc2.weight", {"mlp.c_proj.weight", true}},
      {"mlp.fc2.bias", {"mlp.c_proj.bias"}},
  };
  return rules;
}
const Rules& Gpt2Rest() {
  static const Rules rules = {
      {"embed.token.weight", {"transformer.wte.weight"}},
      {"embed.position.weight", {"transformer.wpe.weight"}},
      {"head.norm.weight", {"transformer.ln_f.weight"}},
      {"head.norm.bias", {"transformer.ln_f.bias"}},
      {"head.lm.weight", {kHeadName}},
  };
  return rules;
}
const Rules& LlamaBlock() {
  static const Rules rules = {
      {"norm1.weight", {"input_layernorm.weight"}},      {"attn.q.weight", {"self_attn.q_proj.weight"}},
      {"attn.k.weight", {"self_attn.k_proj.weight"}},    {"attn.v.weight", {"self_attn.v_proj.weight"}},
      {"attn.proj.weight", {"self_attn.o_proj.weight"}}, {"norm2.weight", {"post_attention_layernorm.weight"}},
      {"mlp.gate.weight", {"mlp.gate_proj.weight"}},     {"mlp.up.weight", {"mlp.up_proj.weight"}},
      {"mlp.down.weight", {"mlp.down_proj.weight"}},
  };
  return rules;
}
const Rules& LlamaRest() {
  static const Rules rules = {
      {"embed.token.weight", {"model.embed_tokens.weight"}},
      {"head.norm.weight", {"model.norm.weight"}},
      {"head.lm.weight", {kHeadName}},
  };
  return rules;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::vector<MappedTensor> MapParameters(const model::ModelSpec& spec) {
  PENSTOCK_CHECK(spec.family == "gpt2" || spec.family == "llama", "family '{}' has no names elsewhere", spec.family);
  const bool gpt2 = spec.family == "gpt2";
  std::vector<MappedTensor> mapped;
  for (const model::ParameterSpec& parameter : spec.parameters) {
    std::string_view name = parameter.name;
    std::string prefix;
    const Rules* rules = gpt2 ? &Gpt2Rest() : &LlamaRest();
    if (constexpr std::string_view blocks = "blocks."; name.substr(0, blocks.size()) == blocks) {
      const size_t dot = name.find('.', blocks.size());
      prefix = (gpt2 ? "transformer.h." : "model.layers.") +
               std::string(name.substr(blocks.size(), dot - blocks.size())) + ".";
      name.remove_prefix(dot + 1);
      rules = gpt2 ? &Gpt2Block() : &LlamaBlock();
    }
    const auto rule = rules->find(name);
    PENSTOCK_CHECK(rule != rules->end(), "parameter '{}' has no name elsewhere", parameter.name);
    std::vector<int64_t> shape = parameter.shape;
    if (rule->second.transposed) std::swap(shape[0], shape[1]);
    mapped.push_back({prefix + rule->second.theirs, rule->second.transposed, shape});
  }
  return mapped;
}

std::string_view WithoutHeadPrefix(std::string_view theirs) {
  for (const std::string_view prefix : {"transformer.", "model."})
    if (theirs.substr(0, prefix.size()) == prefix) return theirs.substr(prefix.size());
  return theirs;
}

bool IsConstantBuffer(std::string_view theirs) {
  return EndsWith(theirs, ".attn.bias") || EndsWith(theirs, ".attn.masked_bias") ||
         EndsWith(theirs, ".rotary_emb.inv_freq");
}

}  // namespace penstock::huggingface
