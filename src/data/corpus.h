// src/data/corpus.h
//
// Text documents from a file, from a folder, or from the Python standard library's sources on this machine.
//
// Order:  documents are sorted by relative path (bytes, '/' as separator), so it does not depend on the file system.
// Errors: UserError for a path that is not there, a folder without a matching file, a binary file (named), an empty
//         corpus; WorldError when a file cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::data {

struct Document {
  std::string name;  // relative path; the file's name for a single file
  std::string text;
};

struct CorpusOptions {
  std::vector<std::string> include = {"*"};  // a file is read when one of these matches ...
  std::vector<std::string> exclude = {};     // ... and none of these
  int64_t max_bytes = INT64_MAX;             // whole documents in order, until the next one would pass it
  bool empty_files = false;                  // among the found ones
};

struct Corpus {
  std::vector<Document> documents;
  int64_t bytes = 0;              // sum of the texts
  int64_t skipped_documents = 0;  // left out because of max_bytes
};

struct FoundFile {
  std::string name;  // relative
  std::string path;
  int64_t bytes = 0;
  int64_t changed = 0;  // time of the last change, nanoseconds
};
// Of FoundFile::changed. WorldError when the file is not there.
int64_t TimeOfChange(const std::string& path);
// The files of a folder that LoadText would read, ascending by name, whatever is in them. WorldError when a folder
// cannot be listed.
std::vector<FoundFile> FindFiles(const std::string& folder, const CorpusOptions& options);

// `path` is a file (read whatever its name) or a folder (searched recursively; links to folders are not followed,
// empty files are left out).
Corpus LoadText(const std::string& path, const CorpusOptions& options = {});

// The folder with the Python standard library's sources: the newest /usr/lib/python3.N or /usr/local/lib/python3.N
// with sources, else what `python3` on the PATH says. UserError when there is none.
std::string FindPythonLibrary();
// That folder's *.py files, without tests and installed packages.
Corpus LoadPythonLibrary(int64_t max_bytes = INT64_MAX);

// Does the glob match the relative path? '*' matches any run of characters but '/', '**' any run, '?' one character
// but '/'. A pattern without '/' is held against the last part of the path alone: "*.py".
bool GlobMatches(std::string_view pattern, std::string_view path);

// Why the bytes are not text ("it has NUL bytes"), or "": NUL bytes, or more than a tenth of the bytes are control
// characters or no valid UTF-8.
std::string WhyNotText(std::string_view bytes);

}  // namespace penstock::data
