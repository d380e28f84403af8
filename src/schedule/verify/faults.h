// src/schedule/verify/faults.h
//
// Where the parts of the verifier put what they find. Keeps `max_faults` at most, and of one code no more than half of
// them (a wrong route touches every action), so that what is found later still has room.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "schedule/verify.h"

namespace penstock::schedule::verify {

class Faults {
 public:
  Faults(VerifyReport& report, size_t max_faults) : report_(report), max_faults_(max_faults) {}

  template <typename... Args>
  void Add(FaultCode code, ActionRef where, fmt::format_string<Args...> format, Args&&... args) {
    size_t& count = of_code_[static_cast<size_t>(code)];
    if (report_.faults.size() >= max_faults_ || count >= std::max<size_t>(1, max_faults_ / 2)) {
      ++report_.faults_left_out;
      return;
    }
    ++count;
    report_.faults.push_back({code, where, fmt::format(format, std::forward<Args>(args)...)});
  }

 private:
  VerifyReport& report_;
  size_t max_faults_;
  std::array<size_t, kFaultCodeCount> of_code_{};
};

}  // namespace penstock::schedule::verify
