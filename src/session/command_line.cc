#include "session/command_line.h"

#include <algorithm>
#include <thread>

#include "base/error.h"

namespace penstock::session {

std::string ShellWord(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./=,") ==
          std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

int ThreadsOrCores(int64_t threads) {
  if (threads < 0 || threads > 1024) throw UserError("--threads {}: 1 to 1024, or 0 for the number of cores", threads);
  return threads > 0 ? static_cast<int>(threads) : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void RequireOneLineSeparator(const std::string& separator) {
  if (separator.find('\n') != std::string::npos) throw UserError("--document-separator is one line");
}

}  // namespace penstock::session
