// src/schedule/verify/faults.h
//
// Where the parts of the verifier put what they find. Keeps the first `max_faults`.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "schedule/verify.h"

namespace penstock::schedule::verify {

class Faults {
 public:
  Faults(VerifyReport& report, size_t max_faults) : report_(report), max_faults_(max_faults) {}

  template <typename... Args>
  void Add(FaultCode code, ActionRef where, fmt::format_string<Args...> format, Args&&... args) {
    if (report_.faults.size() < max_faults_)
      report_.faults.push_back({code, where, fmt::format(format, std::forward<Args>(args)...)});
  }
  bool empty() const { return report_.faults.empty(); }

 private:
  VerifyReport& report_;
  size_t max_faults_;
};

}  // namespace penstock::schedule::verify
