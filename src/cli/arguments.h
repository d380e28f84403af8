// src/cli/arguments.h
//
// What a sub-command declares: positional arguments, options and flags, each bound to a variable that holds the
// default and receives the value. CLI11 does the work; it stays behind this header, because a file that includes it
// takes as long to compile as one that includes libtorch.
//
//   arguments.Positional("config", &options->config, "a configuration (TOML)", Arguments::kRequired);
//   arguments.Option("--top-k", &options->top_k, "draw from the k likeliest tokens; 0: from all");
//
// A number that is none, is out of range or has anything after it is a user error that names the option. The variables
// must live until the command has run. Single thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace penstock::cli {

class Arguments {
 public:
  static constexpr bool kRequired = true;

  explicit Arguments(CLI::App& app) : app_(app) {}

  void Positional(const std::string& name, std::string* value, const std::string& help, bool required = false);
  // One or more words.
  void Positionals(const std::string& name, std::vector<std::string>* values, const std::string& help);
  // Names: "--a", or several as "--a,--b". The default is shown in the help unless it is empty.
  void Option(const std::string& names, std::string* value, const std::string& help);
  // One value each time it is given.
  void Repeated(const std::string& names, std::vector<std::string>* values, const std::string& help);
  // KEY=VALUE words, several at once or repeated. A word without '=' is refused: it is a path that was meant to stand
  // before the option.
  void Assignments(const std::string& name, std::vector<std::string>* values, const std::string& help);
  void Option(const std::string& names, std::optional<int>* value, const std::string& help);
  void Option(const std::string& names, int64_t* value, const std::string& help);
  void Option(const std::string& names, double* value, const std::string& help);
  void Choice(const std::string& names, std::string* value, const std::vector<std::string>& choices,
              const std::string& help);
  void Flag(const std::string& names, bool* value, const std::string& help);

 private:
  CLI::App& app_;
};

}  // namespace penstock::cli
