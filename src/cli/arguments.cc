#include "cli/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

namespace penstock::cli {
namespace {

// Decimal only: CLI11 would read 010 as eight.
template <typename T>
T Number(const std::string& names, const std::string& text, const char* kind) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range)
    throw CLI::ValidationError(names, fmt::format("'{}' does not fit", text));
  if (error != std::errc() || stop != end) throw CLI::ValidationError(names, fmt::format("'{}' is not {}", text, kind));
  return value;
}

}  // namespace

void Arguments::Positional(const std::string& name, std::string* value, const std::string& help, bool required) {
  app_.add_option(name, *value, help)->required(required);
}

void Arguments::Positionals(const std::string& name, std::vector<std::string>* values, const std::string& help) {
  app_.add_option(name, *values, help)->required();
}

void Arguments::Repeated(const std::string& names, std::vector<std::string>* values, const std::string& help) {
  app_.add_option(names, *values, help + " (may be repeated)")->expected(1)->take_all();
}

void Arguments::Option(const std::string& names, std::string* value, const std::string& help) {
  CLI::Option* option = app_.add_option(names, *value, help);
  if (!value->empty()) option->capture_default_str();
}

void Arguments::Assignments(const std::string& name, std::vector<std::string>* values, const std::string& help) {
  const auto check = [name](const std::string& word) {
    if (word.find('=') != std::string::npos) return std::string();
    return fmt::format("'{}' after {} is no section.key=value; paths stand before {}", word, name, name);
  };
  app_.add_option(name, *values, help + " (several, or repeated)")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->check(CLI::Validator(check, ""));
}

void Arguments::Option(const std::string& names, std::optional<int>* value, const std::string& help) {
  app_.add_option_function<std::string>(
          names, [names, value](const std::string& text) { *value = Number<int>(names, text, "a whole number"); }, help)
      ->type_name("INT");
}

void Arguments::Option(const std::string& names, int64_t* value, const std::string& help) {
  app_.add_option_function<std::string>(
          names, [names, value](const std::string& text) { *value = Number<int64_t>(names, text, "a whole number"); },
          help)
      ->type_name("INT")
      ->default_str(std::to_string(*value));
}

void Arguments::Option(const std::string& names, double* value, const std::string& help) {
  const auto read = [names, value](const std::string& text) {
    *value = Number<double>(names, text, "a number");
    if (!std::isfinite(*value)) throw CLI::ValidationError(names, fmt::format("'{}' is not a finite number", text));
  };
  app_.add_option_function<std::string>(names, read, help)->type_name("NUMBER")->default_str(fmt::format("{}", *value));
}

void Arguments::Choice(const std::string& names, std::string* value, const std::vector<std::string>& choices,
                       const std::string& help) {
  app_.add_option(names, *value, help)->check(CLI::IsMember(choices))->capture_default_str();
}

void Arguments::Flag(const std::string& names, bool* value, const std::string& help) {
  app_.add_flag(names, *value, help);
}

}  // namespace penstock::cli
