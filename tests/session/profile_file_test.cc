#include "session/profile_file.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "base/file.h"

namespace penstock::session {
namespace {

schedule::Profile Sample() {
  schedule::Profile profile;
  profile.machine = "a \"machine\"";
  profile.Add("layer:x:forward:fp32:16", {4, 0.1, 3});
  profile.Add("layer:x:forward:fp32:16", {8, 1.0 / 3, 2});
  profile.Add("layer:x:forward:fp32:16", {4, 0.2, 3, 2});
  profile.Add("step", {1, 0, 1});
  return profile;
}

TEST(ProfileFile, ReadsBackToTheSameBits) {
  const schedule::Profile read = ParseProfile(PrintProfile(Sample()), "profile.json");
  EXPECT_EQ(read.machine, Sample().machine);
  EXPECT_EQ(PrintProfile(read), PrintProfile(Sample()));
  EXPECT_EQ(read.Find("layer:x:forward:fp32:16", 8)->seconds, 1.0 / 3);
}

TEST(ProfileFile, TimesWithoutRanksAtOnceAreOfOne) {
  const auto read = ParseProfile(R"({"penstock_profile": 1, "subjects": {"a": [[1, 2, 3]]}})", "old.json");
  EXPECT_FALSE(read.Find("a", 1, 1)->extrapolated);
  EXPECT_TRUE(read.Find("a", 1, 2)->extrapolated);
}

TEST(ProfileFile, SaysWhatIsWrong) {
  const auto error = [](const std::string& text) -> std::string {
    try {
      ParseProfile(text, "here.json");
    } catch (const UserError& e) {
      return e.what();
    }
    return "accepted";
  };
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "JSON"},
           {"[]", "JSON"},
           {"{}", "penstock_profile"},
           {R"({"penstock_profile": 2, "subjects": {}})", "version 2"},
           {R"({"penstock_profile": 1})", "subjects"},
           {R"({"penstock_profile": 1, "subjects": {"a": 1}})", "'a'"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 2]]}})", "[size, seconds, count, ranks at once]"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 2, 3, 4, 5]]}})",
            "[size, seconds, count, ranks at once]"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 2, 0]]}})", "count"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 1e308, 1]]}})", "time"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1e-300, 1, 1]]}})", "size"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 1, 1]], "a": [[1, 2, 1]]}})", "'a' is there twice"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 2, 1, 0]]}})", "ranks"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, 2, 1, 1.5]]}})", "ranks"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[0, 2, 1]]}})", "size"},
           {R"({"penstock_profile": 1, "subjects": {"a": [[1, -2, 1]]}})", "time"}}) {
    EXPECT_NE(error(text).find(words), std::string::npos) << text << ": " << error(text);
    EXPECT_NE(error(text).find("here.json"), std::string::npos);
  }
}

TEST(ProfileFile, SurvivesDamage) {
  const std::string good = PrintProfile(Sample());
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = good;
    for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
    try {
      ParseProfile(text, "damaged");
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(ProfileFile, SeveralFilesAreMerged) {
  const std::string a = testing::TempDir() + "/penstock_profile_a.json",
                    b = testing::TempDir() + "/penstock_profile_b.json";
  schedule::Profile other;
  other.Add("update:sgd:fp32", {10, 2, 1});
  WriteFileAtomically(a, PrintProfile(Sample()), true);
  WriteFileAtomically(b, PrintProfile(other), true);
  const schedule::Profile merged = LoadProfiles(a + "," + b);
  EXPECT_EQ(merged.subjects().size(), 3u);
  EXPECT_EQ(merged.machine, Sample().machine);
  EXPECT_THROW(LoadProfiles(a + ",,"), UserError);
  EXPECT_THROW(LoadProfiles(a + ".no"), UserError);
}

}  // namespace
}  // namespace penstock::session
