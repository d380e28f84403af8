#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/strided_windows.h"
#include "model/gpt.h"
#include "nn/decoder.h"
#include "nn/init.h"
#include "report/metrics.h"
#include "report/run_files.h"
#include "sentencepiece_model.h"
#include "session/run/eval_command.h"
#include "session/run/evaluate.h"
#include "session/run/tiny_run.h"

namespace penstock::session {
namespace {

using model::Precision;

struct SmallModel {
  explicit SmallModel(const std::string& family, bool tied = true) {
    at::set_num_threads(1);
    model::GptConfig config{
        .family = family, .layers = 2, .hidden = 32, .heads = 4, .vocabulary = 67, .context = 16, .tied = tied};
    if (family == "llama") config.kv_heads = 2;
    config.init_std = 0.3;
    spec = model::BuildGptSpec(config);
    for (const auto& p : spec.parameters) parameters.push_back(nn::InitialParameter(p, 1, Precision::fp64));
  }
  at::Tensor& operator[](const std::string& name) { return parameters[spec.parameter_index(name)]; }
  model::ModelSpec spec;
  std::vector<at::Tensor> parameters;
};

// Of another kind: a full forward for the tokens before each label, and softmax in a plain loop.
Evaluation Plainly(const SmallModel& m, const data::Dataset& data) {
  Evaluation sum;
  for (int64_t i = 0; i < data.size(); ++i) {
    const data::Sample sample = data.Get(i);
    for (size_t t = 0; t < sample.labels.size(); ++t) {
      if (sample.labels[t] == data::kIgnoredLabel) continue;
      at::Tensor before = at::empty({1, static_cast<int64_t>(t) + 1}, at::kLong);
      for (size_t k = 0; k <= t; ++k) before[0][static_cast<int64_t>(k)] = sample.tokens[k];
      const at::Tensor logits = nn::LastLogits(m.spec, Precision::fp64, m.parameters, before);
      double largest = -INFINITY, total = 0;
      int64_t likeliest = -1;
      for (int64_t v = 0; v < 67; ++v)
        if (const double z = logits[0][v].item<double>(); z > largest) largest = z, likeliest = v;
      for (int64_t v = 0; v < 67; ++v) total += std::exp(logits[0][v].item<double>() - largest);
      sum.nats += largest + std::log(total) - logits[0][sample.labels[t]].item<double>();
      sum.correct += likeliest == sample.labels[t];
      sum.tokens += 1;
    }
  }
  return sum;
}

Evaluation All(const SmallModel& m, const data::Dataset& data, int64_t batch, std::vector<int64_t> bytes = {}) {
  const Evaluator evaluator(m.spec, Precision::fp64, m.parameters, std::move(bytes));
  Evaluation sum;
  for (int64_t first = 0; first < data.size(); first += batch)
    sum += evaluator.Evaluate(data, first, std::min(batch, data.size() - first));
  return sum;
}

TEST(Evaluate, EqualsAPlainComputation) {
  const data::ListDataset lists = data::ListDataset::Random({16, 3, 9, 1, 12}, 67, 5, /*ignore_last=*/true);
  data::TokenStream stream(67);
  for (int i = 0; i < 60; ++i) stream.Append(i * i % 67);
  const data::StridedWindows strided(std::move(stream), 16, 5);
  for (const char* family : {"gpt2", "llama"}) {
    const SmallModel m(family);
    for (const data::Dataset* data :
         {static_cast<const data::Dataset*>(&lists), static_cast<const data::Dataset*>(&strided)}) {
      const Evaluation plain = Plainly(m, *data);
      for (const int64_t batch : {1, 2, 100}) {
        const Evaluation all = All(m, *data, batch);
        EXPECT_NEAR(all.nats, plain.nats, 1e-9 * plain.nats) << family << " " << batch;
        EXPECT_EQ(all.tokens, plain.tokens);
        EXPECT_EQ(all.correct, plain.correct);
        EXPECT_EQ(all.bytes, 0);
        EXPECT_TRUE(std::isnan(all.bits_per_byte()));
      }
    }
  }
}

// A model whose logits are the logarithms of given probabilities, whatever the context: its loss is what the counts of
// the labels say, and where these are the probabilities it is their entropy.
TEST(Evaluate, AModelOfFrequenciesHasTheirEntropy) {
  data::TokenStream stream(67);
  for (int i = 0; i < 4000; ++i) stream.Append(i * i % 67 % 9);
  std::vector<double> counts(67, 0);
  double entropy = 0;
  for (int64_t i = 1; i < stream.size(); ++i) counts[stream[i]] += 1;
  for (const double c : counts)
    if (c > 0) entropy -= c / 3999 * std::log(c / 3999);
  const data::StridedWindows windows(std::move(stream), 16, 16);

  SmallModel m("gpt2", /*tied=*/false);
  for (at::Tensor& p : m.parameters) p.zero_();
  EXPECT_NEAR(All(m, windows, 32).loss(), std::log(67.0), 1e-12);  // nothing known
  m["head.norm.bias"][0] = 1;                                      // the hidden state is the first unit vector
  for (int64_t v = 0; v < 67; ++v) m["head.lm.weight"][v][0] = std::log((counts[v] + 1e-30) / 3999);
  const Evaluation all = All(m, windows, 32, std::vector<int64_t>(67, 2));
  EXPECT_EQ(all.tokens, 3999);
  EXPECT_NEAR(all.loss(), entropy, 1e-9);
  EXPECT_NEAR(all.perplexity(), std::exp(entropy), 1e-8);
  EXPECT_NEAR(all.accuracy(), *std::max_element(counts.begin(), counts.end()) / 3999, 1e-12);
  EXPECT_EQ(all.bytes, 2 * 3999);
  EXPECT_NEAR(all.bits_per_byte(), entropy / std::log(2.0) / 2, 1e-9);
}

TEST(Evaluate, APieceDoesNotDependOnWhoTakesIt) {
  const SmallModel m("llama");
  const auto data = std::make_shared<data::ListDataset>(data::ListDataset::Random({16, 9, 9, 16, 12, 16, 7}, 67, 5));
  std::vector<Evaluation> totals;
  for (const int ranks : {1, 2, 3, 5}) {
    TrainEvaluation evaluation(m.spec, Precision::fp64, data, {}, /*samples=*/5, /*piece=*/2);
    for (int rank = ranks - 1; rank >= 0; --rank) evaluation.Share(rank, ranks, m.parameters);
    totals.push_back(evaluation.Total());
    EXPECT_EQ(totals.back().nats, totals.front().nats) << ranks;  // the same bits
    EXPECT_EQ(totals.back().tokens, 16 + 9 + 9 + 16 + 12);
  }
}

class SpaceDropper : public tokenizer::ByteTokenizer {
 public:
  std::string Decode(std::span<const int32_t> ids) const override {
    const std::string text = ByteTokenizer::Decode(ids);
    return !text.empty() && text[0] == ' ' ? text.substr(1) : text;
  }
  std::vector<tokenizer::SpecialToken> special_tokens() const override { return {{7, "<x>"}}; }
};

// Tokens that stand for one byte each used to count as three (U+FFFD).
TEST(Evaluate, BytesOfTokensAddUpWithSentencePieceToo) {
  const std::string folder = testing::TempDir() + "penstock-bytes-of-tokens";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/tokenizer.model", std::ios::binary) << SentencePieceModel(SomePieces());
  const auto tokenizer = tokenizer::LoadTokenizer(folder);
  std::filesystem::remove_all(folder);
  const std::vector<int64_t> bytes = BytesOfTokens(*tokenizer);
  for (const std::string text : {"the quick fox", "the \xE6\xBC\xA2\xE5\xAD\x97 fox\n\xF0\x9F\x98\x80 na\xC3\xAFve"}) {
    int64_t sum = 0;
    for (const int32_t id : tokenizer->Encode(text)) sum += bytes[static_cast<size_t>(id)];
    EXPECT_EQ(sum, static_cast<int64_t>(text.size()) + 1) << text << ": with the space that is put before a text";
  }
  EXPECT_EQ(bytes[3 + 0xE6], 1);
  EXPECT_EQ(bytes[1], 0) << "<s>";
}

TEST(Evaluate, BytesOfTokensAddUpToTheText) {
  const std::vector<int64_t> bytes = BytesOfTokens(tokenizer::ByteTokenizer());
  EXPECT_EQ(bytes['x'], 1);
  EXPECT_EQ(bytes[0], 0);  // the end of a document
  const std::vector<int64_t> others = BytesOfTokens(SpaceDropper());
  EXPECT_EQ(others[' '], 1);
  EXPECT_EQ(others[7], 0);
}

nlohmann::json Json(EvalOptions options) {
  options.json = true;
  std::ostringstream out;
  EXPECT_EQ(RunEval(options, out), 0);
  return nlohmann::json::parse(out.str());
}

const std::vector<std::string> kEvaluating = {"data.validation_fraction=0.2", "eval.every=3", "eval.batches=0",
                                              "numerics.reproducible=true"};

std::vector<std::optional<report::EvalMetrics>> Evals(const TinyRun& run) {
  std::vector<std::optional<report::EvalMetrics>> evals;
  for (const auto& m : report::ReadMetrics(run.path() + "/" + std::string(report::kMetricsFile)))
    evals.push_back(m.eval);
  return evals;
}

TEST(EvalCommand, SaysWhatTheTrainingSaid) {
  const TinyRun run(kEvaluating);
  const auto evals = Evals(run);
  ASSERT_EQ(evals.size(), 4u);
  EXPECT_FALSE(evals[0] || evals[1]);
  ASSERT_TRUE(evals[2] && evals[3]);  // every third, and the last
  EXPECT_LT(evals[3]->loss, evals[2]->loss);
  EXPECT_LT(evals[3]->loss, std::log(256.0));
  const auto own = Json({.from = run.path()});
  EXPECT_NEAR(own.at("loss").get<double>(), evals[3]->loss, 1e-6);
  EXPECT_EQ(own.at("tokens"), evals[3]->tokens);
  EXPECT_NEAR(own.at("bits_per_byte").get<double>(), *evals[3]->bits_per_byte, 1e-6);
  EXPECT_NEAR(own.at("accuracy").get<double>(), evals[3]->accuracy, 1e-6);
  EXPECT_NEAR(own.at("perplexity").get<double>(), std::exp(own.at("loss").get<double>()), 1e-9);

  // The whole file: every byte but the first, and the end of the document.
  const std::string text = ReadFile(run.text_path());
  const auto whole = Json({.from = run.path(), .data = run.text_path()});
  EXPECT_EQ(whole.at("tokens"), text.size());
  EXPECT_EQ(whole.at("bytes"), text.size() - 1);
  EXPECT_EQ(whole.at("documents"), 1);
  EXPECT_NEAR(whole.at("bits_per_byte").get<double>(),
              whole.at("loss").get<double>() * static_cast<double>(text.size()) / std::log(2.0) /
                  static_cast<double>(text.size() - 1),
              1e-9);
  std::vector<double> counts(256, 0);
  for (size_t i = 1; i < text.size(); ++i) counts[static_cast<unsigned char>(text[i])] += 1;
  counts[0] += 1;
  double entropy = 0;
  for (const double c : counts)
    if (c > 0) entropy -= c / static_cast<double>(text.size()) * std::log(c / static_cast<double>(text.size()));
  EXPECT_NEAR(whole.at("unigram_loss").get<double>(), entropy, 1e-9);
  // More before each token, the same tokens.
  const auto strided = Json({.from = run.path(), .data = run.text_path(), .stride = 4});
  EXPECT_EQ(strided.at("tokens"), text.size());
  EXPECT_NE(strided.at("loss"), whole.at("loss"));
  EXPECT_EQ(Json({.from = run.path(), .data = run.text_path(), .max_windows = 3}).at("tokens"), 3 * 16);
  EXPECT_GT(Json({.from = run.path(), .split = "train"}).at("tokens"), own.at("tokens"));
  std::ostringstream words;
  EXPECT_EQ(RunEval({.from = run.path()}, words), 0);
  EXPECT_NE(words.str().find("bits per byte"), std::string::npos) << words.str();
}

TEST(EvalCommand, WhatItRefuses) {
  const TinyRun run;
  const auto refused = [&](EvalOptions options, const std::string& word) {
    options.from = run.path();
    std::ostringstream out;
    try {
      RunEval(options, out);
      ADD_FAILURE() << word;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
    EXPECT_EQ(out.str(), "");
  };
  refused({}, "data.validation_fraction");  // nothing was held back
  refused({.data = "x", .split = "train"}, "--split");
  refused({.split = "test"}, "validation or train");
  refused({.data = run.folder() + "/nothing.txt"}, "nothing.txt");
  refused({.data = run.text_path(), .window = 17}, "context");
  refused({.data = run.text_path(), .stride = 17}, "--stride");
  refused({.stride = 4}, "--data");
  refused({.data = run.text_path(), .batch = 0}, "--batch");
  WriteFileAtomically(run.text_path(), "another text, long enough for a window or two\n", true);
  refused({.split = "train"}, "not what");
}

// The validation loss belongs to the weights and the data: the layout has no say, nor has a resume.
TEST(EvalCommand, TrainingEvaluatesInEveryLayout) {
  const TinyRun reference(kEvaluating);
  const auto expected = Evals(reference);
  const auto expect_same = [&](const TinyRun& run, const std::string& name) {
    const auto evals = Evals(run);
    ASSERT_EQ(evals.size(), expected.size()) << name;
    for (size_t i = 0; i < evals.size(); ++i) {
      ASSERT_EQ(evals[i].has_value(), expected[i].has_value()) << name;
      if (!evals[i]) continue;
      EXPECT_EQ(evals[i]->loss, expected[i]->loss) << name;  // the same bits
      EXPECT_EQ(evals[i]->accuracy, expected[i]->accuracy) << name;
      EXPECT_EQ(evals[i]->bits_per_byte, expected[i]->bits_per_byte) << name;
    }
  };
  for (const std::vector<std::string>& layout : std::vector<std::vector<std::string>>{
           {"parallel.data=2"},
           {"parallel.pipeline=2"},
           {"parallel.pipeline=2", "parallel.data=2"},
           {"parallel.pipeline=2", "parallel.schedule='zb-h1'"},
           {"parallel.pipeline=2", "parallel.chunks=2", "parallel.schedule='interleaved-1f1b'"}}) {
    std::vector<std::string> all = kEvaluating;
    all.insert(all.end(), layout.begin(), layout.end());
    expect_same(TinyRun(all), layout.back());
  }
  std::vector<std::string> half = kEvaluating;
  half.insert(half.end(), {"train.steps=3", "optimizer.decay_steps=4"});
  std::vector<std::string> straight = kEvaluating;
  straight.push_back("optimizer.decay_steps=4");
  TinyRun resumed(half);
  resumed.Train({"train.steps=4", "parallel.data=2"});
  const auto evals = Evals(resumed), whole = Evals(TinyRun(straight));
  ASSERT_EQ(evals.size(), 4u);
  EXPECT_EQ(evals[2]->loss, whole[2]->loss);
  EXPECT_EQ(evals[3]->loss, whole[3]->loss);
}

// Evaluations look at the weights and leave them alone.
TEST(EvalCommand, TrainingIsTheSameWithoutEvaluations) {
  const std::vector<std::string> layout = {"numerics.reproducible=true", "parallel.pipeline=2",
                                           "data.validation_fraction=0.2"};
  std::vector<std::string> with = layout;
  with.push_back("eval.every=1");
  const TinyRun a(layout), b(with);
  const auto one = report::ReadMetrics(a.path() + "/" + std::string(report::kMetricsFile));
  const auto two = report::ReadMetrics(b.path() + "/" + std::string(report::kMetricsFile));
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].loss, two[i].loss);
    EXPECT_EQ(one[i].grad_norm, two[i].grad_norm);
    EXPECT_TRUE(two[i].eval);
  }
}

}  // namespace
}  // namespace penstock::session
