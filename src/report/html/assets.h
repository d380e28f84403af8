// src/report/html/assets.h
//
// Files of this folder that go into every report as they are. The build turns <name>.css and <name>.js into these
// strings (cmake/Embed.cmake).
#pragma once

#include <string_view>

namespace penstock::report::html {

extern const std::string_view kStyleCss;    // style.css
extern const std::string_view kTimelineJs;  // timeline.js

}  // namespace penstock::report::html
