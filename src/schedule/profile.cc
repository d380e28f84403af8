#include "schedule/profile.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::schedule {

void Profile::Add(const std::string& subject, Sample sample) {
  PENSTOCK_CHECK(sample.size > 0 && sample.seconds >= 0, "profile of '{}': size {}, {} seconds", subject, sample.size,
                 sample.seconds);
  auto& samples = subjects_[subject];
  const auto it = std::lower_bound(samples.begin(), samples.end(), sample.size,
                                   [](const Sample& s, double size) { return s.size < size; });
  if (it == samples.end() || it->size != sample.size) {
    samples.insert(it, sample);
  } else if (sample.count >= it->count) {
    *it = sample;
  }
}

std::optional<Profile::Answer> Profile::Find(std::string_view subject, double size) const {
  const auto found = subjects_.find(subject);
  if (found == subjects_.end() || found->second.empty()) return std::nullopt;
  const std::vector<Sample>& samples = found->second;
  const auto above = std::lower_bound(samples.begin(), samples.end(), size,
                                      [](const Sample& s, double wanted) { return s.size < wanted; });
  if (above != samples.end() && above->size == size) return Answer{above->seconds, false};
  if (above == samples.begin()) return Answer{above->seconds * size / above->size, true};
  const Sample& below = *(above - 1);
  if (above == samples.end()) return Answer{below.seconds * size / below.size, true};
  const double share = (size - below.size) / (above->size - below.size);
  return Answer{below.seconds + share * (above->seconds - below.seconds), false};
}

void Profile::Merge(const Profile& other) {
  for (const auto& [subject, samples] : other.subjects_)
    for (const Sample& sample : samples) Add(subject, sample);
}

}  // namespace penstock::schedule
