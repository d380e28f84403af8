#include "data/config.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "data/corpus.h"
#include "data/entropy.h"
#include "data/token_sources.h"

namespace penstock::data {
namespace {

// The tokens of the documents, each followed by the end-of-document token.
TokenStream Encode(const std::vector<Document>& documents, const tokenizer::Tokenizer& tokenizer,
                   const ProgressSink& sink) {
  TokenStream stream(tokenizer.vocabulary());
  int64_t bytes = 0, done = 0;
  for (const Document& document : documents) bytes += static_cast<int64_t>(document.text.size());
  WorkProgress progress("encode the text", bytes, WorkProgress::Unit::bytes, sink);
  for (const Document& document : documents) {
    const auto add = [&] { stream.Append(tokenizer.Encode(document.text)); };
    if (document.text.size() > size_t{1} << 20)
      progress.TickWhile(add);
    else
      add();
    stream.Append(tokenizer.end_of_document());
    progress.Update(done += static_cast<int64_t>(document.text.size()));
  }
  return stream;
}

// Moves about `fraction` of the bytes off the end of `documents`, whole documents where there are several.
std::vector<Document> SplitTail(std::vector<Document>& documents, int64_t bytes, double fraction) {
  const auto wanted = static_cast<int64_t>(static_cast<double>(bytes) * fraction);
  std::vector<Document> tail;
  if (documents.size() == 1) {
    std::string& text = documents[0].text;
    size_t cut = text.size() - static_cast<size_t>(wanted);
    if (const size_t line_end = text.find('\n', cut); line_end != std::string::npos && line_end + 1 < text.size())
      cut = line_end + 1;
    tail.push_back({documents[0].name, text.substr(cut)});
    text.resize(cut);
    return tail;
  }
  size_t first = documents.size();
  for (int64_t moved = 0; first > 1 && moved < wanted; --first)
    moved += static_cast<int64_t>(documents[first - 1].text.size());
  tail.assign(std::make_move_iterator(documents.begin() + static_cast<ptrdiff_t>(first)),
              std::make_move_iterator(documents.end()));
  documents.resize(first);
  return tail;
}

TextData LoadCorpus(const DataConfig& config, const ProgressSink& sink) {
  Corpus corpus = config.source == "text" ? LoadText(config.path, {config.include, config.exclude, config.max_bytes})
                                          : LoadPythonLibrary(config.max_bytes);
  TextData out;
  out.tokenizer = tokenizer::LoadTokenizer(config.tokenizer);
  out.documents = static_cast<int64_t>(corpus.documents.size());
  out.bytes = corpus.bytes;
  out.skipped_documents = corpus.skipped_documents;
  if (out.skipped_documents > 0)
    log::Warning("data: {} of {} documents are left out, the text is cut at data.max_bytes = {}", out.skipped_documents,
                 out.skipped_documents + out.documents, FormatBytes(config.max_bytes));

  const WindowOptions windows{config.sequence, config.masked_prefix, config.keep_short_window};
  if (config.validation_fraction > 0) {
    const std::vector<Document> tail = SplitTail(corpus.documents, corpus.bytes, config.validation_fraction);
    try {
      out.validation = std::make_shared<TextWindows>(Encode(tail, *out.tokenizer, sink), windows);
    } catch (const UserError& error) {
      throw UserError("validation part ({} of the text, data.validation_fraction = {}): {}",
                      FormatBytes(static_cast<int64_t>(tail.empty() ? 0 : tail[0].text.size())),
                      config.validation_fraction, error.what());
    }
  }
  TokenStream stream = Encode(corpus.documents, *out.tokenizer, sink);
  out.unigram_entropy = UnigramEntropy(stream);
  out.train = std::make_shared<TextWindows>(std::move(stream), windows);
  return out;
}

// Nats per token of what the sources' ids are drawn from.
double EntropyOf(const std::vector<TokenSource>& sources, const ProgressSink& sink) {
  std::vector<double> share(static_cast<size_t>(sources.front().train->info().vocabulary));
  double weights = 0;
  for (const TokenSource& source : sources) {
    const auto counts = CountTokens(*source.train, sink);
    const double of_one = source.weight / static_cast<double>(std::max<int64_t>(source.train->tokens(), 1));
    for (size_t id = 0; id < share.size() && id < counts->values().size(); ++id)
      share[id] += of_one * static_cast<double>(counts->values()[id]);
    weights += source.weight;
  }
  double entropy = 0;
  for (const double s : share)
    if (s > 0) entropy -= s / weights * std::log(s / weights);
  return entropy;
}

TextData LoadTokens(const DataConfig& config, uint64_t seed, const ProgressSink& sink) {
  const std::vector<TokenSource> sources =
      OpenTokenSources(config.sources.empty() ? std::vector<std::string>{config.path} : config.sources);
  TextData out;
  out.tokenizer = TokenizerOf(sources);
  if (config.tokenizer != "bytes" &&
      tokenizer::LoadTokenizer(config.tokenizer)->Fingerprint() != sources.front().train->info().fingerprint)
    throw UserError(
        "data.tokenizer: '{}' is another tokenizer than the one '{}' was made with; leave it out, or make "
        "the token files with it",
        config.tokenizer, sources.front().train->path());
  // Before windows: a damaged file is found here, and nothing is cut from it.
  out.unigram_entropy = EntropyOf(sources, sink);
  const WindowOptions windows{config.sequence, config.masked_prefix, config.keep_short_window};
  std::vector<MixtureDataset::Source> mixed;
  std::vector<std::shared_ptr<const Dataset>> held_back;
  for (const TokenSource& source : sources) {
    out.documents += source.train->documents();
    out.bytes += source.train->file_size();
    mixed.push_back(
        {source.path, std::make_shared<TokenWindows>(source.train, windows, config.packing, sink), source.weight});
    if (source.validation == nullptr || source.validation->documents() == 0) continue;
    CountTokens(*source.validation, sink);
    held_back.push_back(std::make_shared<TokenWindows>(source.validation, windows, config.packing, sink));
  }
  if (config.sources.empty())
    out.train = mixed[0].data;
  else
    out.train = std::make_shared<MixtureDataset>(std::move(mixed), seed, config.shuffle);
  if (!held_back.empty()) out.validation = std::make_shared<ConcatDataset>(std::move(held_back));
  return out;
}

}  // namespace

void DataConfig::Declare(config::Section& s) {
  const auto is_text = [this] { return source == "text"; };
  const auto is_tokens = [this] { return source == "tokens"; };
  const auto is_no_tokens = [this] { return source != "tokens"; };
  const std::string text_only = "data.source = 'text'", tokens_only = "data.source = 'tokens'";
  const std::string no_tokens = "data.source is not 'tokens'";
  s.Help("What the model reads, and in which order. The order of samples depends on the seed and the step alone.");
  s.String("source", &source,
           {.choices = {"python-stdlib", "text", "tokens"},
            .help = "the Python standard library's sources on this machine, text at data.path, or token files that "
                    "`penstock tokenize` made"});
  s.String("path", &path,
           {.help = "a text file, or a folder searched for files; a token file, or the folder with train.tokens",
            .required = true,
            .only_if = [this] { return source == "text" || (source == "tokens" && sources.empty()); },
            .only_if_text = "data.source = 'text', or 'tokens' without data.sources"});
  s.StringList(
      "sources", &sources,
      {.help = "token files or folders to mix, each as \"path=weight\": samples are taken in proportion to the "
               "weights, whatever the sizes",
       .only_if = is_tokens,
       .only_if_text = tokens_only});
  s.Enum("packing", &packing, {{"cross", Packing::kCross}, {"within", Packing::kWithin}},
         {.help = "cross: samples are cut from one long stream and go over ends of documents; within: each document is "
                  "cut by itself, short samples are padded",
          .only_if = is_tokens,
          .only_if_text = tokens_only});
  s.StringList("include", &include,
               {.help = "globs of the files of a folder to read, e.g. [\"*.txt\", \"docs/**\"]",
                .only_if = is_text,
                .only_if_text = text_only});
  s.StringList("exclude", &exclude,
               {.help = "globs of files to leave out all the same", .only_if = is_text, .only_if_text = text_only});
  s.Bytes("max_bytes", &max_bytes,
          {.min = 1,
           .help = "read documents in order of path up to this size",
           .only_if = is_no_tokens,
           .only_if_text = no_tokens});
  s.Real("validation_fraction", &validation_fraction,
         {.min = 0.0,
          .below = 1.0,
          .help = "part of the text that is held back: its last documents. Token files bring their own",
          .only_if = is_no_tokens,
          .only_if_text = no_tokens});
  s.String(
      "tokenizer", &tokenizer,
      {.help = "how text becomes tokens: bytes (one each, 256 ids), or the path of a tokenizer, a file or a folder "
               "with one. Token files bring theirs; one that is named beside them must be the same"});
  s.Int("sequence", &sequence, {.min = 1, .max = 1 << 24, .help = "length of a sample", .unit = "tokens"});
  s.Int("masked_prefix", &masked_prefix,
        {.min = 0, .help = "labels of the first tokens of a sample that do not count in the loss", .unit = "tokens"});
  s.Bool("keep_short_window", &keep_short_window, {.help = "keep the last sample of the text although it is shorter"});
  s.Bool("shuffle", &shuffle, {.help = "visit samples in a new order each epoch, given by run.seed"});
  s.Bool("ragged", &ragged, {.help = "allow micro-batches of unequal size when the batch does not divide"});
  s.Enum("last_batch", &last_batch,
         {{"wrap", LastBatch::kWrap}, {"drop", LastBatch::kDrop}, {"ragged", LastBatch::kRagged}},
         {.help = "the last batch of an epoch: filled from the next epoch, left out, or short"});
  s.Require({"sources", "last_batch"}, [this]() -> std::string {
    return source != "tokens" || sources.empty() || last_batch == LastBatch::kWrap
               ? ""
               : "a mixture of sources has no end, so it has no last batch; leave data.last_batch out";
  });
  s.Require({"sequence", "masked_prefix"}, [this]() -> std::string {
    return masked_prefix < sequence ? "" : "the masked prefix covers the whole sample, no label would count";
  });
}

BatchOptions DataConfig::MakeBatchOptions(int64_t batch, int64_t micro_batch, uint64_t seed) const {
  BatchOptions options;
  options.batch = batch;
  options.micro_batch = micro_batch;
  options.allow_ragged = ragged;
  options.last_batch = last_batch;
  options.shuffle = shuffle;
  options.seed = seed;
  return options;
}

TextData LoadTextData(const DataConfig& config, uint64_t seed, const ProgressSink& sink) {
  return config.source == "tokens" ? LoadTokens(config, seed, sink) : LoadCorpus(config, sink);
}

int32_t VocabularyOf(const DataConfig& config) {
  if (config.source != "tokens") return tokenizer::LoadTokenizer(config.tokenizer)->vocabulary();
  const auto sources =
      OpenTokenSources(config.sources.empty() ? std::vector<std::string>{config.path} : config.sources);
  return sources.front().train->info().vocabulary;
}

}  // namespace penstock::data
