// src/base/log.h
//
// Messages to people, on standard error (standard output is for results). Any thread.
//   log::Info("{} documents", n);
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace penstock::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

// Messages below the level are dropped; kInfo at start.
void SetLevel(Level level);
bool IsOn(Level level);
void Write(Level level, std::string_view message);

template <typename... Args>
void Print(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (IsOn(level)) Write(level, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  Print(Level::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  Print(Level::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void Warning(fmt::format_string<Args...> format, Args&&... args) {
  Print(Level::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  Print(Level::kError, format, std::forward<Args>(args)...);
}

}  // namespace penstock::log
