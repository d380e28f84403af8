#include "session/run/eval_command.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/units.h"
#include "data/config.h"
#include "data/corpus.h"
#include "data/strided_windows.h"
#include "data/token_file.h"
#include "session/run/evaluate.h"
#include "session/run/open_model.h"

namespace penstock::session {
namespace {

struct EvalData {
  std::string name;
  std::shared_ptr<const data::Dataset> windows;
  int64_t documents = 0;  // 0: not known
};

void CheckOptions(const EvalOptions& options) {
  if (!options.data.empty() && !options.split.empty())
    throw UserError("--data and --split: a split is of the run's own data; give one of them");
  if (options.split != "" && options.split != "validation" && options.split != "train")
    throw UserError("--split is validation or train, not '{}'", options.split);
  if (options.window < 0 || options.stride < 0 || options.max_windows < 0)
    throw UserError("--window, --stride and --max-windows must not be negative");
  if (options.batch < 1 || options.batch > 65536) throw UserError("--batch is from 1 to 65536, not {}", options.batch);
  if (options.data.empty() && (options.window > 0 || options.stride > 0))
    throw UserError("--window and --stride need --data: the run's own data is evaluated in the run's own windows");
}

data::TokenStream TokensOfText(const std::string& path, const tokenizer::Tokenizer& tokenizer, int64_t& documents) {
  const data::Corpus corpus = data::LoadText(path);
  data::TokenStream stream(tokenizer.vocabulary());
  documents = static_cast<int64_t>(corpus.documents.size());
  for (const data::Document& document : corpus.documents) {
    stream.Append(tokenizer.Encode(document.text));
    stream.Append(tokenizer.end_of_document());  // as in training
  }
  return stream;
}

data::TokenStream TokensOfFile(const std::string& path, const tokenizer::Tokenizer& tokenizer, int64_t& documents) {
  const data::TokenFile file(path);
  if (file.info().fingerprint != tokenizer.Fingerprint())
    throw UserError("'{}' was made with the tokenizer '{}', which is not the model's ('{}')", path,
                    file.info().tokenizer, tokenizer.name());
  file.Verify();
  documents = file.documents();
  data::TokenStream stream(tokenizer.vocabulary());
  for (int64_t i = 0; i < file.tokens(); ++i) stream.Append(file[i]);
  return stream;
}

EvalData Given(const EvalOptions& options, const OpenedModel& model) {
  const int64_t window = options.window > 0 ? options.window : model.settings.values.data.sequence;
  if (window > model.spec.context)
    throw UserError("--window {} is longer than the model's context of {} tokens", window, model.spec.context);
  const int64_t stride = options.stride > 0 ? options.stride : window;
  if (stride > window) throw UserError("--stride {} is longer than the window of {} tokens", stride, window);
  EvalData out;
  out.name = options.data;
  for (const char* file : {"validation.tokens", "train.tokens"})
    if (std::filesystem::exists(options.data + "/" + file))
      throw UserError("'{}' is a folder of token files; give one of them: --data {}/{}", options.data, options.data,
                      file);
  const bool tokens = std::filesystem::path(options.data).extension() == ".tokens";
  out.windows =
      std::make_shared<data::StridedWindows>(tokens ? TokensOfFile(options.data, *model.tokenizer, out.documents)
                                                    : TokensOfText(options.data, *model.tokenizer, out.documents),
                                             window, stride);
  return out;
}

EvalData Own(const EvalOptions& options, const OpenedModel& model) {
  const data::TextData text = data::LoadTextData(model.data, static_cast<uint64_t>(model.settings.values.run.seed));
  const bool train = options.split == "train";
  // Another text would be cut elsewhere, and what was trained on could be in the validation part.
  if (!model.data_fingerprint.empty() && text.train->Fingerprint() != model.data_fingerprint)
    throw UserError("the data of the run is not what '{}' was trained on (contents or place changed); give --data",
                    model.checkpoint);
  if (!train && text.validation == nullptr)
    throw UserError(
        "the run held nothing back (data.validation_fraction = 0, or token files without a validation part); give "
        "--data FILE, or --split train");
  return {train ? "training data of the run" : "validation data of the run", train ? text.train : text.validation, 0};
}

// The loss of who knows nothing but how often each of the predicted tokens occurs among them.
double UnigramLoss(const std::vector<int64_t>& counts, int64_t tokens) {
  double nats = 0;
  for (const int64_t count : counts)
    if (count > 0) {
      const double p = static_cast<double>(count) / static_cast<double>(tokens);
      nats -= p * std::log(p);
    }
  return nats;
}

}  // namespace

int RunEval(const EvalOptions& options, std::ostream& out) {
  CheckOptions(options);
  const auto model = OpenModel({.from = options.from, .tokenizer = options.tokenizer, .threads = options.threads});
  const EvalData data = options.data.empty() ? Own(options, *model) : Given(options, *model);
  std::vector<at::Tensor> parameters;
  for (const model::ParameterSpec& p : model->spec.parameters) parameters.push_back(model->parameters.at(p.name));
  const Evaluator evaluator(model->spec, model->precision, parameters, BytesOfTokens(*model->tokenizer));
  const int64_t windows =
      options.max_windows > 0 ? std::min(options.max_windows, data.windows->size()) : data.windows->size();

  const auto start = std::chrono::steady_clock::now();
  Evaluation total;
  std::vector<int64_t> counts(static_cast<size_t>(model->spec.vocabulary));
  for (int64_t first = 0; first < windows; first += options.batch) {
    const int64_t count = std::min(options.batch, windows - first);
    total += evaluator.Evaluate(*data.windows, first, count);
    for (int64_t i = first; i < first + count; ++i)
      for (const int32_t label : data.windows->Get(i).labels)
        if (label != data::kIgnoredLabel) ++counts[static_cast<size_t>(label)];
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double unigram = UnigramLoss(counts, total.tokens);

  if (options.json) {
    nlohmann::ordered_json document = {{"checkpoint", model->checkpoint},
                                       {"step", model->step},
                                       {"data", data.name},
                                       {"windows", windows},
                                       {"tokens", total.tokens},
                                       {"bytes", total.bytes},
                                       {"loss", total.loss()},
                                       {"perplexity", total.perplexity()},
                                       {"bits_per_byte", nullptr},
                                       {"accuracy", total.accuracy()},
                                       {"unigram_loss", unigram},
                                       {"seconds", seconds}};
    if (total.bytes > 0) document["bits_per_byte"] = total.bits_per_byte();
    if (data.documents > 0) document["documents"] = data.documents;
    out << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  out << fmt::format("{} at step {}, on {}\n", model->checkpoint, model->step, data.name);
  out << fmt::format("  tokens         {} predicted, of {} of text, in {} windows\n", total.tokens,
                     FormatBytes(total.bytes), windows);
  out << fmt::format("  loss           {:.4f} nats per token (how often each token occurs alone gives {:.4f})\n",
                     total.loss(), unigram);
  out << fmt::format("  perplexity     {:.3f}\n", total.perplexity());
  if (total.bytes > 0) out << fmt::format("  bits per byte  {:.4f}\n", total.bits_per_byte());
  out << fmt::format("  accuracy       {:.2f} % of the next tokens are the likeliest one\n", 100 * total.accuracy());
  out << fmt::format("  time           {}, {} tokens/s\n", FormatSeconds(seconds),
                     FormatCount(static_cast<double>(total.tokens) / std::max(seconds, 1e-9)));
  return 0;
}

}  // namespace penstock::session
