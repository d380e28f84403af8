// src/session/run/compare_command.h
//
// `penstock compare`: runs two plans and names the first thing that differs; or one plan against a reference; or one
// computation in all layouts against the plain loop.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace penstock::session {

struct CompareOptions {
  std::string a, b;                        // b may be empty: then a again with assignments_b, or an oracle
  std::vector<std::string> assignments;    // to both
  std::vector<std::string> assignments_b;  // to b only
  std::string oracle;                      // "", "plain", "whole"
  bool sweep = false;
  bool json = false;
};

// 0: equal (or equal up to rounding where bits are not promised); 1: not.
int RunCompare(const CompareOptions& options, std::ostream& out, std::ostream& log);

}  // namespace penstock::session
