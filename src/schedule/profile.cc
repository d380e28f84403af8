#include "schedule/profile.h"

#include <algorithm>
#include <limits>
#include <span>

#include "base/error.h"

namespace penstock::schedule {
namespace {

using Samples = std::span<const Profile::Sample>;

// Of one number of ranks at once, ascending by size; not empty.
Profile::Answer OfSize(Samples samples, double size) {
  const auto above = std::lower_bound(samples.begin(), samples.end(), size,
                                      [](const Profile::Sample& s, double wanted) { return s.size < wanted; });
  if (above != samples.end() && above->size == size) return {above->seconds, false};
  if (above == samples.begin()) return {above->seconds * size / above->size, true};
  const Profile::Sample& below = *(above - 1);
  if (above == samples.end()) return {below.seconds * size / below.size, true};
  const double share = (size - below.size) / (above->size - below.size);
  return {below.seconds + share * (above->seconds - below.seconds), false};
}

}  // namespace

void Profile::Add(const std::string& subject, Sample sample) {
  PENSTOCK_CHECK(sample.size > 0 && sample.seconds >= 0 && sample.count > 0 && sample.ranks_at_once > 0,
                 "profile of '{}': size {}, {} seconds, {} measurements, {} ranks at once", subject, sample.size,
                 sample.seconds, sample.count, sample.ranks_at_once);
  auto& samples = subjects_[subject];
  const auto key = [](const Sample& s) { return std::pair(s.ranks_at_once, s.size); };
  const auto it = std::lower_bound(samples.begin(), samples.end(), sample,
                                   [&](const Sample& a, const Sample& b) { return key(a) < key(b); });
  if (it == samples.end() || key(*it) != key(sample)) {
    samples.insert(it, sample);
    return;
  }
  const int64_t count = it->count + std::min(sample.count, std::numeric_limits<int64_t>::max() - it->count);
  it->seconds += (sample.seconds - it->seconds) * static_cast<double>(sample.count) / static_cast<double>(count);
  it->count = count;
}

std::optional<Profile::Answer> Profile::Find(std::string_view subject, double size, int ranks_at_once) const {
  const auto found = subjects_.find(subject);
  if (found == subjects_.end() || found->second.empty()) return std::nullopt;
  const std::vector<Sample>& samples = found->second;
  // All with the number of ranks at once that `of` has.
  const auto range = [&](std::vector<Sample>::const_iterator of) {
    const auto [first, last] =
        std::equal_range(samples.begin(), samples.end(), *of,
                         [](const Sample& a, const Sample& b) { return a.ranks_at_once < b.ranks_at_once; });
    return OfSize(Samples(first, last), size);
  };
  const auto above = std::lower_bound(samples.begin(), samples.end(), ranks_at_once,
                                      [](const Sample& s, int wanted) { return s.ranks_at_once < wanted; });
  if (above != samples.end() && above->ranks_at_once == ranks_at_once) return range(above);
  if (above == samples.begin() || above == samples.end()) {
    const Answer nearest = range(above == samples.end() ? above - 1 : above);
    return Answer{nearest.seconds, true};
  }
  const auto below = above - 1;
  const Answer few = range(below), many = range(above);
  const double share = static_cast<double>(ranks_at_once - below->ranks_at_once) /
                       static_cast<double>(above->ranks_at_once - below->ranks_at_once);
  return Answer{few.seconds + share * (many.seconds - few.seconds), few.extrapolated || many.extrapolated};
}

void Profile::Merge(const Profile& other) {
  for (const auto& [subject, samples] : other.subjects_)
    for (const Sample& sample : samples) Add(subject, sample);
}

}  // namespace penstock::schedule
