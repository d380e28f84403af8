// src/report/colours.h
//
// One colour per kind of action, the same in every drawing. Chosen to stay apart in print and for the common forms of
// colour blindness (Okabe and Ito's palette, lightened so that black numbers are readable on it).
#pragma once

#include <string_view>

#include "schedule/action.h"

namespace penstock::report {

constexpr std::string_view ColourOf(schedule::Kind kind) {
  using schedule::Kind;
  switch (kind) {
    case Kind::forward:
      return "#7fb8e6";
    case Kind::backward:
      return "#f2b04c";
    case Kind::backward_input:
      return "#f2c879";
    case Kind::backward_weight:
      return "#6fc3a0";
    case Kind::recompute:
      return "#c3ddf2";
    case Kind::update:
      return "#c79bd3";
    case Kind::check:
      return "#d9d9d9";
    case Kind::task:
      return "#bdbdbd";
    case Kind::send:
      return "#8f8f8f";
    case Kind::recv:
      return "#b4b4b4";
    case Kind::collective:
      return "#d9776a";
    case Kind::copy:
      return "#a8a06a";
  }
  return "#000000";
}

}  // namespace penstock::report
