// src/report/colours.h
//
// One colour per kind of action, per cause of a bubble and per class of memory, the same in every drawing. Chosen to
// stay apart in print and for the common forms of colour blindness (Okabe and Ito's palette, lightened so that black
// numbers are readable on it).
#pragma once

#include <string_view>

#include "base/buffer_class.h"
#include "report/bubbles.h"
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

constexpr std::string_view ColourOf(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::warm_up:
      return "#8ea3b8";
    case BubbleCause::drain:
      return "#c0cad4";
    case BubbleCause::imbalance:
      return "#e08a3c";
    case BubbleCause::message:
      return "#4f8fd0";
    case BubbleCause::collective:
      return "#c9587a";
    case BubbleCause::offload:
      return "#a8a06a";
    case BubbleCause::host:
      return "#77706b";
  }
  return "#000000";
}

constexpr std::string_view ColourOf(BufferClass buffer_class) {
  switch (buffer_class) {
    case BufferClass::parameter:
      return "#4f7fb5";
    case BufferClass::gradient:
      return "#8bb8dd";
    case BufferClass::optimizer_state:
      return "#9a78b8";
    case BufferClass::activation:
      return "#e6a23c";
    case BufferClass::boundary:
      return "#5fb08e";
    case BufferClass::message:
      return "#b7dcc9";
    case BufferClass::statistic:
      return "#a9a9a9";
    case BufferClass::rows:
      return "#c9587a";
  }
  return "#000000";
}

}  // namespace penstock::report
