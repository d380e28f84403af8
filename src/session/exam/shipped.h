// src/session/exam/shipped.h
//
// The files exam/*.toml, ascending by path.
#pragma once

#include <span>

#include "base/shipped_file.h"

namespace penstock::session {

std::span<const ShippedFile> ShippedExams();

}  // namespace penstock::session
