// src/data/find_text.h
//
// The text files that a command is given: files, and folders that are searched.
#pragma once

#include <string>
#include <vector>

#include "data/text_pieces.h"

namespace penstock::data {

struct TextInputs {
  std::vector<std::string> inputs;  // files and folders, in this order; files of a folder by name
  // Of the files of folders; globs (data/corpus.h).
  std::vector<std::string> include = {"*"};
  std::vector<std::string> exclude = {};
  std::string out = {};  // what lies in this folder is not read; empty: none
};

// With the empty files: documents without text. UserError for inputs that are not there, folders without a file that is
// wanted, and when all files are empty.
std::vector<TextFile> FindTextFiles(const TextInputs& inputs);

}  // namespace penstock::data
