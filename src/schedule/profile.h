// src/schedule/profile.h
//
// Measured times, by what was measured and how large it was: `train` writes them, cost reads them where a price would
// otherwise be computed from a device's data sheet.
//
// A subject is a text without spaces, a size is a number in the subject's own unit; times between two measured sizes
// are interpolated linearly, outside the range the nearest one is scaled in proportion and marked as extrapolated.
// Ranks that share a machine slow each other (memory bandwidth, caches, clock), so a time also says how many computed
// at once when it was measured; between two such numbers it is interpolated, outside them the nearest is taken and
// marked.
//   layer:<kind of layer, with its shapes>:<action kind>:<precision>:<tokens of a sample>   size: samples
//     (<precision> is followed by .<n>t where an operation uses n > 1 threads; here and below)
//   update:<optimizer>:<precision>, norm:<precision>                                        size: elements
//   reduce:<ranks>:<precision>, sum_uses:<ranks>:<precision>                                size: elements
//     (read, and written by nobody yet: in a run their times are mixed with waiting)
//   action:<action kind or operator>      what an action takes beside the above             size: 1
//   step                                  what a step takes beside its actions              size: 1
// Plain data. Reading from several threads is safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::schedule {

class Profile {
 public:
  struct Sample {
    double size = 1;
    double seconds = 0;  // typical: see session/run/measured_profile.h
    int64_t count = 0;   // of measurements
    int ranks_at_once = 1;
  };
  struct Answer {
    double seconds = 0;
    bool extrapolated = false;
  };

  std::string machine;  // what it was measured on, for people

  // Pools with what is there of the same subject, size and ranks at once: the mean over all measurements.
  void Add(const std::string& subject, Sample sample);
  std::optional<Answer> Find(std::string_view subject, double size, int ranks_at_once = 1) const;
  const std::map<std::string, std::vector<Sample>, std::less<>>& subjects() const { return subjects_; }
  bool empty() const { return subjects_.empty(); }
  // Everything of `other`, as Add does.
  void Merge(const Profile& other);

 private:
  std::map<std::string, std::vector<Sample>, std::less<>> subjects_;  // samples ascend by ranks at once, then size
};

}  // namespace penstock::schedule
