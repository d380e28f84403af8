// src/session/exam_command.h
//
// `penstock exam [FILE]`: every point of the exam, its error, averages and worst errors, and the verdict.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace penstock::session {

struct ExamOptions {
  std::string file{};                      // empty: the published points that come with Penstock
  std::vector<std::string> assignments{};  // of every point
  std::string only{};                      // points whose id contains this; empty: all
  std::string bound = "6,10";              // AVERAGE,WORST in percent, of held-out points of bounded groups
  bool json = false;
  bool verbose = false;
};
// 0; 1 when the held-out points of bounded groups are past the bound on average or one of them is past the worst, or a
// memory or an order of an own run is wrong. UserError for a file or a bound that cannot be read.
int RunExam(const ExamOptions& options, std::ostream& out);

}  // namespace penstock::session
