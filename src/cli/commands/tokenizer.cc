#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "session/inspect_tokenizer_command.h"
#include "session/train_tokenizer_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  struct Options {
    std::string action, text;
    bool json = false;
    session::TrainTokenizerCommand train;
  };
  auto options = std::make_shared<Options>();
  data::TrainTokenizerOptions& train = options->train.train;
  train.text.include.clear();  // the options add to them
  train.bpe.special_tokens.clear();
  arguments.Positional("action", &options->action, "train or inspect", Arguments::kRequired);
  arguments.Positionals("input", &train.text.inputs,
                        "train: text files (.jsonl: a document per line), or folders with them; inspect: bytes, or a "
                        "tokenizer: a file, or a folder with one");
  arguments.Option("--out", &options->train.out, "train: the folder for tokenizer.json");
  arguments.Option("--vocabulary", &options->train.vocabulary, "train: tokens, with 256 bytes and the special ones");
  arguments.Option("--pattern", &train.bpe.pattern,
                   "train: how text is cut in words: gpt2, llama3, qwen2, or a regular expression");
  arguments.Choice("--normalizer", &train.bpe.normalizer, {"none", "nfc", "nfkc"}, "train: what is done to text first");
  arguments.Repeated("--special", &train.bpe.special_tokens,
                     "train: a special token; the first ends documents; without any: <|endoftext|>");
  arguments.Option("--min-frequency", &options->train.min_frequency, "train: how often a pair occurs to be merged");
  arguments.Repeated("--include", &train.text.include, "train: glob of the files of folders to read, e.g. '*.txt'");
  arguments.Repeated("--exclude", &train.text.exclude, "train: glob of files to leave out all the same");
  arguments.Option("--jsonl-field", &train.jsonl_field, "train: the field of .jsonl lines with the text");
  arguments.Flag("--skip-malformed", &train.skip_malformed, "train: leave out .jsonl lines without such a text");
  arguments.Option("--document-separator", &train.document_separator, "train: a line that stands between documents");
  arguments.Option("--threads", &options->train.threads, "train: threads that count; 0: one per core");
  arguments.Flag("--overwrite", &options->train.overwrite, "train: replace another tokenizer in the folder");
  arguments.Option("--text", &options->text, "inspect: show the tokens of this text");
  arguments.Flag("--json", &options->json, "one JSON document; progress goes to stderr");
  return [options] {
    const std::vector<std::string>& inputs = options->train.train.text.inputs;
    options->train.json = options->json;
    if (options->action == "train") return session::RunTrainTokenizer(options->train, std::cout, std::cerr);
    if (options->action != "inspect")
      throw UserError("tokenizer: there is no action '{}'{}", options->action,
                      DidYouMean(options->action, {"train", "inspect"}));
    if (inputs.size() != 1) throw UserError("tokenizer inspect: one tokenizer, not {}", inputs.size());
    session::InspectTokenizerCommand inspect{.tokenizer = inputs.front(), .text = {}, .json = options->json};
    if (!options->text.empty()) inspect.text = options->text;
    return session::RunInspectTokenizer(inspect, std::cout);
  };
}

const RegisterCommand kRegister{
    {.name = "tokenizer", .summary = "a tokenizer learned from text; what a tokenizer is", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
