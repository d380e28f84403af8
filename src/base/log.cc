#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace penstock::log {
namespace {

spdlog::logger& Logger() {
  // Never destroyed: rank threads may log while the process ends.
  static spdlog::logger* logger = [] {
    auto* created = new spdlog::logger("penstock", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_pattern("%^%l%$: %v");
    created->set_level(spdlog::level::info);
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

}  // namespace

void SetLevel(Level level) { Logger().set_level(ToSpdlog(level)); }

bool IsOn(Level level) { return Logger().should_log(ToSpdlog(level)); }

void Write(Level level, std::string_view message) {
  Logger().log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace penstock::log
