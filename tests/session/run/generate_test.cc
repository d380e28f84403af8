#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "model/gpt.h"
#include "nn/init.h"
#include "session/run/generate_command.h"
#include "session/run/sample.h"
#include "session/run/tiny_run.h"

namespace penstock::session {
namespace {

using model::Precision;

// Weights by keyed randomness; large, so that logits differ.
struct RandomModel {
  explicit RandomModel(const std::string& family, int64_t context = 24) {
    at::set_num_threads(1);
    model::GptConfig config{
        .family = family, .layers = 2, .hidden = 32, .heads = 4, .vocabulary = 256, .context = context};
    if (family == "llama") config.kv_heads = 2;
    config.init_std = 0.3;
    spec = model::BuildGptSpec(config);
    for (const auto& p : spec.parameters) parameters[p.name] = nn::InitialParameter(p, 1, Precision::fp32);
  }
  model::ModelSpec spec;
  checkpoint::NamedTensors parameters;
  tokenizer::ByteTokenizer bytes;
};

TEST(Window, JumpsByHalfAContextAndDependsOnTheCountAlone) {
  for (const int64_t context : {1, 2, 3, 7, 8, 1024}) {
    int64_t before = 0;
    for (int64_t n = 1; n < 5 * context + 3; ++n) {
      const int64_t start = WindowStart(n, context);
      EXPECT_GE(start, before);
      EXPECT_LE(n - start, context);
      if (n <= context) {
        EXPECT_EQ(start, 0);
      } else {
        EXPECT_GT(n - start, context - std::max<int64_t>(1, context / 2));
      }
      before = start;
    }
  }
}

TEST(Generate, TheCacheChangesNothing) {
  for (const char* family : {"gpt2", "llama"}) {
    RandomModel m(family);
    for (const double temperature : {0.0, 1.0}) {
      TextGenerator generator(m.spec, Precision::fp32, m.parameters, m.bytes);
      SampleOptions options{.tokens = 70, .sampling = {.temperature = temperature}, .seed = 3};  // past the context
      const SampledText with = generator.Generate("a prompt", options);
      options.cache = false;
      EXPECT_EQ(with.ids, generator.Generate("a prompt", options).ids) << family << " " << temperature;
      EXPECT_EQ(with.ids.size(), 70u);
      EXPECT_EQ(with.prompt_tokens, 8);
    }
    TextGenerator generator(m.spec, Precision::fp32, m.parameters, m.bytes);
    const std::vector<int32_t> ids = m.bytes.Encode("some text that is longer than the context");
    for (const size_t n : {size_t{1}, size_t{5}, size_t{24}, size_t{25}, ids.size(), size_t{9}}) {
      const std::vector<int32_t> some(ids.begin(), ids.begin() + n);
      const auto a = generator.Logits(some, true), b = generator.Logits(some, false);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << family << " " << n;
    }
  }
}

TEST(Generate, ATextBelongsToItsSeedAndNumber) {
  RandomModel m("gpt2");
  TextGenerator one(m.spec, Precision::fp32, m.parameters, m.bytes);
  SampleOptions options{.tokens = 40, .sampling = {.temperature = 1}, .seed = 3};
  const auto zero = one.Generate("x", options).ids;
  options.sample = 2;
  const auto two = one.Generate("x", options).ids;
  EXPECT_NE(zero, two);
  TextGenerator other(m.spec, Precision::fp32, m.parameters, m.bytes);
  EXPECT_EQ(other.Generate("x", options).ids, two);
  options.seed = 4;
  EXPECT_NE(other.Generate("x", options).ids, two);
}

// Frequencies of first tokens over many samples against the model's own distribution.
TEST(Generate, FirstTokensFollowTheModel) {
  RandomModel m("gpt2");
  TextGenerator generator(m.spec, Precision::fp32, m.parameters, m.bytes);
  SampleOptions options{.tokens = 1, .sampling = {.temperature = 1.5, .top_k = 5}, .seed = 9};
  const auto p = NextTokenProbabilities(generator.Logits(m.bytes.Encode("ab"), false), options.sampling);
  std::vector<int> counts(p.size(), 0);
  constexpr int kTexts = 2000;
  for (options.sample = 0; options.sample < kTexts; ++options.sample)
    ++counts[generator.Generate("ab", options).ids.at(0)];
  double statistic = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      EXPECT_EQ(counts[i], 0);
    } else {
      statistic += (counts[i] - p[i] * kTexts) * (counts[i] - p[i] * kTexts) / (p[i] * kTexts);
    }
  }
  EXPECT_LT(statistic, 18.5);  // 4 degrees of freedom, once in a thousand; the seed is fixed
}

TEST(Generate, EndsWithTheDocumentWhenAsked) {
  RandomModel m("gpt2");
  for (auto& [name, tensor] : m.parameters) tensor.zero_();  // all tokens alike: the likeliest is the lowest, 0
  TextGenerator generator(m.spec, Precision::fp32, m.parameters, m.bytes);
  SampleOptions options{.tokens = 5, .sampling = {.temperature = 0}, .stop_at_end = true};
  const SampledText ended = generator.Generate("x", options);
  EXPECT_TRUE(ended.ended);
  EXPECT_EQ(ended.text, "");
  options.stop_at_end = false;
  const SampledText whole = generator.Generate("x", options);
  EXPECT_FALSE(whole.ended);
  EXPECT_EQ(whole.text, std::string(5, '\0'));
}

// Drops the space at the very front of what it decodes, as tokenizers of the SentencePiece kind do.
class SpaceDropper : public tokenizer::ByteTokenizer {
 public:
  std::string Decode(std::span<const int32_t> ids) const override {
    const std::string text = ByteTokenizer::Decode(ids);
    return !text.empty() && text[0] == ' ' ? text.substr(1) : text;
  }
  std::optional<int32_t> beginning_of_text() const override { return 2; }
};

TEST(Generate, TextIsWhatTheTokensAddToThePrompt) {
  RandomModel m("llama", 512);
  const SpaceDropper dropper;
  TextGenerator generator(m.spec, Precision::fp32, m.parameters, dropper);
  std::string streamed;
  const SampledText text = generator.Generate("p", {.tokens = 150, .sampling = {.temperature = 2}},
                                              [&](std::string_view piece) { streamed += piece; });
  EXPECT_EQ(text.prompt_tokens, 2);
  EXPECT_EQ(text.text, m.bytes.Decode(text.ids));
  EXPECT_EQ(streamed, text.text);
  EXPECT_EQ(PromptTokens(dropper, ""), std::vector<int32_t>{2});
  EXPECT_EQ(PromptTokens(m.bytes, ""), std::vector<int32_t>{0});  // after the end of a document
}

TEST(Generate, PromptsThatTheModelCannotHave) {
  RandomModel m("gpt2");
  m.spec.vocabulary = 100;
  TextGenerator generator(m.spec, Precision::fp32, m.parameters, m.bytes);
  EXPECT_THROW(generator.Generate("z", {.tokens = 1}), UserError);
  EXPECT_THROW(generator.Generate("a", {.tokens = 1, .sampling = {.top_p = 0}}), UserError);
}

std::string Output(const GenerateOptions& options) {
  std::ostringstream out;
  EXPECT_EQ(RunGenerate(options, out), 0);
  return out.str();
}

TEST(GenerateCommand, WritesValidTextWhateverTheModelSays) {
  const TinyRun run;
  GenerateOptions options{.from = run.path(), .prompt = "caf\xC3\xA9 ", .tokens = 300, .temperature = 5};
  const std::string text = Output(options);
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_EQ(text.rfind("caf\xC3\xA9 ", 0), 0u);
  EXPECT_NE(text.find("\xEF\xBF\xBD"), std::string::npos);  // at this temperature bytes are nearly uniform
  options.raw = true;
  const std::string raw = Output(options);
  EXPECT_FALSE(IsUtf8(raw));
  EXPECT_EQ(raw.size(), 6 + 300 + 1u);
  options.raw = false, options.json = true, options.samples = 2;
  const auto document = nlohmann::json::parse(Output(options));
  EXPECT_EQ(options.prompt + document.at("text").get<std::string>() + "\n", text);
  EXPECT_EQ(document.at("samples").size(), 2u);
  EXPECT_NE(document["samples"][0]["text"], document["samples"][1]["text"]);
  EXPECT_EQ(document.at("step"), 4);
}

TEST(GenerateCommand, PromptsFromFilesAndWrongOptions) {
  const TinyRun run;
  WriteFileAtomically(run.folder() + "/prompt.txt", "from a file\n");
  GenerateOptions options{.from = run.path(), .prompt_file = run.folder() + "/prompt.txt", .tokens = 3};
  EXPECT_EQ(Output(options).rfind("from a file\n", 0), 0u);
  options.prompt_file.clear();
  EXPECT_FALSE(Output(options).empty());  // the beginning of a document
  const auto refused = [&](auto change) {
    GenerateOptions wrong = options;
    change(wrong);
    std::ostringstream out;
    EXPECT_THROW(RunGenerate(wrong, out), UserError);
    EXPECT_EQ(out.str(), "");
  };
  refused([](GenerateOptions& o) { o.prompt = "a", o.prompt_file = "b"; });
  refused([](GenerateOptions& o) { o.prompt_file = "nothing-there.txt"; });
  refused([](GenerateOptions& o) { o.tokens = 0; });
  refused([](GenerateOptions& o) { o.samples = 0; });
  refused([](GenerateOptions& o) { o.seed = -1; });
  refused([](GenerateOptions& o) { o.top_p = 0; });
  refused([](GenerateOptions& o) { o.threads = -1; });
  refused([](GenerateOptions& o) { o.raw = o.json = true; });
  refused([](GenerateOptions& o) { o.tokenizer = "no/such/tokenizer"; });
}

}  // namespace
}  // namespace penstock::session
