#include <iostream>
#include <memory>

#include "cli/command.h"
#include "session/tokenize_command.h"

namespace penstock::cli {
namespace {

Run Declare(Arguments& arguments) {
  auto command = std::make_shared<session::TokenizeCommand>();
  data::TokenizeOptions& options = command->tokenize;
  options.include.clear();  // the option adds to it
  arguments.Positionals("input", &options.inputs, "text files (.jsonl: a document per line), or folders with them");
  arguments.Option("--out", &options.out, "the folder for train.tokens and what belongs to it");
  arguments.Option("--tokenizer", &command->tokenizer, "bytes, or a tokenizer: a file, or a folder with one");
  arguments.Repeated("--include", &options.include, "glob of the files of folders to read, e.g. '*.txt'");
  arguments.Repeated("--exclude", &options.exclude, "glob of files to leave out all the same");
  arguments.Option("--jsonl-field", &options.jsonl_field, "the field of .jsonl lines with the text");
  arguments.Flag("--skip-malformed", &options.skip_malformed, "leave out .jsonl lines without such a text");
  arguments.Option("--document-separator", &options.document_separator, "a line that stands between documents");
  arguments.Option("--validation", &options.validation, "fraction of the documents to hold back");
  arguments.Option("--validation-seed", &command->validation_seed, "which documents those are");
  arguments.Option("--threads", &command->threads, "threads that encode; 0: one per core");
  arguments.Option("--part", &command->part, "text after which the state is saved; a killed run goes on from there");
  arguments.Flag("--overwrite", &options.overwrite, "replace other token files in the folder");
  arguments.Flag("--json", &command->json, "a summary as one JSON document; progress goes to stderr");
  return [command] { return session::RunTokenize(*command, std::cout, std::cerr); };
}

const RegisterCommand kRegister{
    {.name = "tokenize", .summary = "text to token files for training", .declare = &Declare}};

}  // namespace
}  // namespace penstock::cli
