#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <new>

#include "base/error.h"
#include "base/nearest.h"

namespace penstock::cli {
namespace {

constexpr int kWorldFailed = 1;
constexpr int kUserError = 2;

int Fail(const std::string& message, int code) {
  std::cout.flush();
  std::cerr << "penstock: error: " << message << "\n";
  return code;
}

// CLI11 would only say that the argument was not expected.
void CheckCommandName(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-' || Registry<Command>::Has(argv[1])) return;
  throw UserError("there is no sub-command '{}'{}{}", argv[1], DidYouMean(argv[1], Registry<Command>::Names()),
                  PENSTOCK_WITH_TORCH ? "" : " (this build has no libtorch: what trains is left out)");
}

// CLI11 would only say that the option was not expected.
std::string UsageMessage(const CLI::ParseError& error, const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
      if (word.rfind("--", 0) == 0 && std::find(known.begin(), known.end(), word) == known.end())
        return fmt::format("{}: there is no option {}{}", app.get_name(), word, DidYouMean(word, known));
    }
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return fmt::format("{}: {} (penstock {} --help)", app.get_name(), message, app.get_name());
}

int ParseAndRun(int argc, const char* const* argv, const std::string& version) {
  CLI::App app("Penstock plans, simulates and runs distributed training of neural networks.", "penstock");
  app.set_version_flag("--version", "penstock " + version);
  app.require_subcommand(1);
  std::map<std::string, Run> runs;
  for (const auto& [name, command] : Registry<Command>::All()) {
    CLI::App* sub = app.add_subcommand(name, command.summary);
    Arguments arguments(*sub);
    runs[name] = command.declare(arguments);
  }
  if (argc < 2) {
    std::cerr << app.help();
    return kUserError;
  }
  CheckCommandName(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help_or_version) {
    return app.exit(help_or_version);
  } catch (const CLI::ParseError& error) {
    const CLI::App* scope = &app;
    if (Registry<Command>::Has(argv[1])) scope = app.get_subcommand(argv[1]);
    return Fail(UsageMessage(error, *scope, argc, argv), kUserError);
  }
  return runs.at(app.get_subcommands().front()->get_name())();
}

}  // namespace

int Main(int argc, const char* const* argv, const std::string& version) {
  try {
    const int code = ParseAndRun(argc, argv, version);
    std::cout.flush();
    if (!std::cout && code == 0) return Fail("standard output could not be written", kWorldFailed);
    return code;
  } catch (const Error& error) {
    return Fail(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return Fail("out of memory", kWorldFailed);
  } catch (const std::exception& error) {
    return Fail(error.what(), kWorldFailed);
  }
}

}  // namespace penstock::cli
