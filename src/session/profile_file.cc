#include "session/profile_file.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"

namespace penstock::session {

using Json = nlohmann::ordered_json;

namespace {

// What times and sizes can be: with room for any machine, and none for sums and products without end.
constexpr double kLeastSize = 1e-6, kMostSize = 1e18, kMostSeconds = 1e6;
constexpr int64_t kMostCount = int64_t{1} << 40;

}  // namespace

std::string PrintProfile(const schedule::Profile& profile) {
  Json document = {{"penstock_profile", 1}, {"machine", profile.machine}, {"subjects", Json::object()}};
  for (const auto& [subject, samples] : profile.subjects())
    for (const auto& s : samples)
      document["subjects"][subject].push_back({s.size, s.seconds, s.count, s.ranks_at_once});
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

schedule::Profile ParseProfile(std::string_view text, const std::string& source) {
  const auto fail = [&source](const std::string& what) -> void {
    throw UserError("'{}' is no profile: {}; profile.json of a run is one", source, what);
  };
  bool flat = true;
  std::set<std::string> names;
  std::string twice;
  const auto bounded = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    flat = flat && depth < 8;
    if (event == nlohmann::json::parse_event_t::key && depth == 2 && !names.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return flat;
  };
  const auto document = nlohmann::json::parse(text, bounded, /*allow_exceptions=*/false);
  if (!flat || !document.is_object()) fail("it is not JSON of the right form");
  if (!twice.empty()) fail(fmt::format("subject '{}' is there twice", twice));
  const auto version = document.find("penstock_profile");
  if (version == document.end() || !version->is_number_integer()) fail("it has no 'penstock_profile'");
  if (version->get<int64_t>() != 1) fail(fmt::format("version {}, and this build reads 1", version->dump()));
  schedule::Profile profile;
  if (const auto machine = document.find("machine"); machine != document.end() && machine->is_string())
    profile.machine = machine->get<std::string>();
  const auto subjects = document.find("subjects");
  if (subjects == document.end() || !subjects->is_object()) fail("it has no 'subjects'");
  for (const auto& [subject, samples] : subjects->items()) {
    if (!samples.is_array()) fail(fmt::format("subject '{}' has no list", subject));
    for (const auto& sample : samples) {
      // Before times said how many ranks computed at once, there were three numbers.
      const bool numbers = sample.is_array() && (sample.size() == 3 || sample.size() == 4) && sample[0].is_number() &&
                           sample[1].is_number() && sample[2].is_number_integer() && sample.back().is_number();
      if (!numbers)
        fail(fmt::format("subject '{}': {} is not [size, seconds, count, ranks at once]", subject, sample.dump()));
      const double size = sample[0].get<double>(), seconds = sample[1].get<double>();
      if (!(size >= kLeastSize && size <= kMostSize) || !(seconds >= 0 && seconds <= kMostSeconds))
        fail(fmt::format("subject '{}': {} has a size or time that is none", subject, sample.dump()));
      const auto count = sample[2].get<int64_t>();
      const double at_once = sample.size() == 4 ? sample[3].get<double>() : 1;
      if (count < 1 || count > kMostCount)
        fail(fmt::format("subject '{}': {} has a count that is none", subject, sample.dump()));
      if (!(at_once >= 1 && at_once <= 1e9) || at_once != std::floor(at_once))
        fail(fmt::format("subject '{}': {} has a number of ranks that is none", subject, sample.dump()));
      profile.Add(subject, {size, seconds, count, static_cast<int>(at_once)});
    }
  }
  return profile;
}

schedule::Profile LoadProfiles(const std::string& files) {
  schedule::Profile profile;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = files.find(',', begin);
    const std::string file = files.substr(begin, end - begin);
    if (file.empty()) throw UserError("cluster.profile = '{}': a name is empty between the commas", files);
    const schedule::Profile one = ParseProfile(ReadFile(file), file);
    profile.Merge(one);
    if (profile.machine.empty()) profile.machine = one.machine;
  }
  return profile;
}

}  // namespace penstock::session
