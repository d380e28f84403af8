// src/session/exam/shipped.h
//
// The files exam/*.toml as they were when Penstock was built. cmake/Exam.cmake writes the definition.
#pragma once

#include <span>
#include <string_view>

namespace penstock::session {

struct ShippedExamFile {
  std::string_view name;  // "exam/published.toml"
  std::string_view text;
};
std::span<const ShippedExamFile> ShippedExams();

}  // namespace penstock::session
