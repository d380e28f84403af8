// What `penstock images` says; needs no libtorch.
#include "session/images_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace penstock::session {
namespace {

class Images : public testing::Test {
 protected:
  // Two digits: a full one (9), and one whose left half is dark (4).
  void SetUp() override {
    std::string pattern = testing::TempDir() + "penstock-images-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.path = folder_ + "/digits.csv";
    std::string text;
    for (int i = 0; i < 64; ++i) text += "16,";
    text += "9\n";
    for (int i = 0; i < 64; ++i) text += i % 8 < 4 ? "0," : "16,";
    WriteFileAtomically(options_.path, text + "4\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Answer() const {
    std::ostringstream out;
    EXPECT_EQ(RunImages(options_, out), 0);
    return out.str();
  }
  std::string Refusal() const {
    std::ostringstream out;
    try {
      RunImages(options_, out);
    } catch (const UserError& error) {
      EXPECT_EQ(out.str(), "");
      return error.what();
    }
    return "accepted";
  }

  std::string folder_;
  ImagesOptions options_;
};

TEST_F(Images, Json) {
  options_.json = true;
  options_.show = 5;  // there are only two
  const auto json = nlohmann::json::parse(Answer());
  EXPECT_EQ(json.at("kind"), "digits");
  EXPECT_EQ(json.at("path"), options_.path);
  EXPECT_EQ(json.at("shape").dump(), R"({"channels":1,"height":8,"width":8})");
  EXPECT_EQ(json.at("max_value"), 16);
  EXPECT_EQ(json.at("classes").size(), 10u);
  const auto& part = json.at("parts").at(0);
  EXPECT_EQ(part.at("name"), "all");
  EXPECT_EQ(part.at("images"), 2);
  EXPECT_EQ(part.at("per_class").dump(), "[0,0,0,0,1,0,0,0,0,1]");
  EXPECT_DOUBLE_EQ(part.at("mean").at(0), 0.75);
  EXPECT_NEAR(part.at("std").at(0), 0.4330127018922193, 1e-12);  // sqrt(3) / 4
  EXPECT_EQ(part.at("fingerprint").get<std::string>().size(), 32u);
  ASSERT_EQ(part.at("shown").size(), 2u);
  EXPECT_EQ(part.at("shown").at(1).at("label"), 4);
  EXPECT_EQ(part.at("shown").at(0).at("rows").at(7), "@@@@@@@@@@@@@@@@");
  EXPECT_EQ(part.at("shown").at(1).at("rows").at(0), "        @@@@@@@@");
}

TEST_F(Images, Text) {
  options_.show = 2;
  const std::string text = Answer();
  for (const char* wanted :
       {": digits, 8 x 8 pixels of 0 to 16, 1 channel, 10 classes\n", "all: 2 pictures\n", "  mean          0.7500\n",
        "  std           0.4330\n", "    4             1\n", "  picture 1: 4\n  |        @@@@@@@@|\n"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "in\n" << text;
}

TEST_F(Images, OptionsThatAreWrong) {
  options_.resize = "8";
  EXPECT_EQ(Refusal(), "--resize: '8' is no size; HEIGHTxWIDTH in pixels would be, for example 32x32");
  options_.resize = "8x-8";
  EXPECT_EQ(Refusal(), "--resize: '8x-8' is no size; HEIGHTxWIDTH in pixels would be, for example 32x32");
  options_.resize = "";
  options_.channels = 2;
  EXPECT_EQ(Refusal(), "--channels: 0 (as the files are), 1 (grey) or 3 (red, green, blue), not 2");
  options_.channels = 0;
  options_.show = 101;
  EXPECT_EQ(Refusal(), "--show: 0 to 100 pictures, not 101");
  options_.show = 0;
  options_.max_bytes = "much";
  EXPECT_EQ(Refusal().rfind("--max-bytes: ", 0), 0u);
  options_.max_bytes = "100 B";
  EXPECT_NE(Refusal().find("more than the 100 B that may be kept in memory; raise that limit"), std::string::npos);
}

}  // namespace
}  // namespace penstock::session
