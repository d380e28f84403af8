// report.html as text; what it looks like is tests/program/html_report.py's.
#include "report/html.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/bubbles.h"
#include "sample.h"

namespace penstock::report {
namespace {

using schedule::Timeline;

size_t Count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Every element that is opened is closed, in order; "" or what is wrong. Contents of script and style are not looked
// at.
std::string Unbalanced(const std::string& page) {
  static const std::vector<std::string> kVoid = {"meta"};
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    if (page.compare(at, 2, "<!") == 0) continue;
    const bool closes = page[at + 1] == '/';
    size_t end = at + (closes ? 2 : 1);
    while (end < page.size() && std::isalnum(static_cast<unsigned char>(page[end]))) ++end;
    const std::string name = page.substr(at + (closes ? 2 : 1), end - at - (closes ? 2 : 1));
    const size_t close = page.find('>', at);
    if (name.empty() || close == std::string::npos) return "a '<' that begins nothing: " + page.substr(at, 40);
    if (closes) {
      if (open.empty() || open.back() != name) return "</" + name + "> closes nothing: " + page.substr(at, 60);
      open.pop_back();
    } else if (page[close - 1] != '/' && std::find(kVoid.begin(), kVoid.end(), name) == kVoid.end()) {
      open.push_back(name);
      if (name == "script" || name == "style") {
        at = page.find("</" + name + ">", at);
        if (at == std::string::npos) return name + " does not end";
        --at;
      }
    }
  }
  return open.empty() ? "" : open.back() + " is never closed";
}

nlohmann::json DataOf(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

StepMetrics Step(int64_t step, double loss) {
  StepMetrics m;
  m.step = step;
  m.loss = loss;
  m.tokens = 512;
  m.seconds = 0.25;
  m.tokens_per_second = 2048;
  m.peak_bytes = {1 << 20, 3 << 20};
  return m;
}

class Page : public ::testing::Test {
 protected:
  void SetUp() override {
    s_ = PipelineOf("1f1b", 2, 1, 4);
    predicted_ = Scaled(Replayed(s_, Rational(1, 10)), 0.01);
    AddMessages(predicted_, s_, 0.001, 4096);
    measured_ = LikeMeasured(s_, 0.0102, 0.0015, 1, 1.3, 3, 5);
    AddMessages(measured_, s_, 0.0014, 4096);
    AddMemory(predicted_, 1 << 20);
    input_.title = "a run";
    input_.predicted = &predicted_;
    input_.measured = &measured_;
    input_.schedule = &s_;
    input_.memory_limits = {30 << 20, 30 << 20};
    input_.metrics = {Step(1, 3), Step(2, 2)};
  }
  schedule::Schedule s_;
  Timeline predicted_, measured_;
  HtmlInput input_;
};

TEST_F(Page, IsOneFileThatNeedsNothingElse) {
  const std::string page = HtmlReport(input_);
  EXPECT_EQ(Unbalanced(page), "");
  for (const char* part : {"http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "XMLHttp"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_EQ(Count(page, "<title>a run</title>"), 1u);
}

TEST_F(Page, AnswersTheFourQuestionsInWords) {
  const std::string page = HtmlReport(input_);
  const size_t end = page.find("id=\"timeline\"");
  const std::string head = page.substr(0, end);
  for (const char* part : {"was predicted, which is", "too short", "of its step without computation", "of the limit",
                           "is tightest", "Largest reason: backward of stage 1 on rank 1 took"})
    EXPECT_NE(head.find(part), std::string::npos) << part << "\n" << head.substr(head.find("<body>"));
  for (const char* part :
       {"id=\"bubbles\"", "id=\"gap\"", "id=\"links\"", "id=\"memory\"", "id=\"curves\"", "id=\"sources\""})
    EXPECT_EQ(Count(page, part), 1u) << part;
}

TEST_F(Page, HoldsEveryActionToTheNanosecond) {
  const auto data = DataOf(HtmlReport(input_));
  ASSERT_EQ(data.at("timelines").size(), 2u);
  const auto& events = data["timelines"][0].at("events");
  EXPECT_EQ(events.at("length").size(), predicted_.events.size());
  EXPECT_EQ(events.at("count").size(), 2u);
  std::multimap<std::pair<int, int64_t>, int64_t> drawn;  // rank, start -> length
  size_t i = 0;
  for (int rank = 0; rank < 2; ++rank) {
    int64_t start = 0;
    for (int k = 0; k < events["count"][rank].get<int>(); ++k, ++i) {
      start += events["start"][i].get<int64_t>();
      drawn.emplace(std::pair(rank, start), events["length"][i].get<int64_t>());
    }
  }
  for (const auto& e : predicted_.events) {
    const auto [from, to] = drawn.equal_range({e.rank, std::llround(e.start * 1e9)});
    EXPECT_TRUE(std::any_of(from, to, [&](const auto& d) {
      return std::abs(d.second - std::llround((e.end - e.start) * 1e9)) <= 1;
    })) << ToString(e.action.key);
  }
  // The typical step begins at 0, as the prediction does.
  const auto& steps = data["timelines"][1].at("steps");
  for (const auto& step : steps)
    if (step.at("typical").get<bool>()) {
      EXPECT_EQ(step.at("start"), 0);
    }
}

TEST_F(Page, EscapesWhatOthersWrote) {
  const std::string evil = "</script><script>alert('x')</script>\"><img onerror=x>&\xff";
  input_.title = evil;
  input_.facts = {{evil, evil}};
  input_.warnings = {evil};
  predicted_.title = measured_.title = evil;
  s_.name = evil;
  const std::string page = HtmlReport(input_);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_EQ(Unbalanced(page), "");
  EXPECT_NE(page.find("<title>&lt;/script&gt;"), std::string::npos);
  DataOf(page);
}

TEST_F(Page, WorksWithAnyPartOfIt) {
  for (int parts = 0; parts < 32; ++parts) {
    HtmlInput some;
    some.title = "some";
    if (parts & 1) some.predicted = &predicted_;
    if (parts & 2) some.measured = &measured_;
    if (parts & 4) some.schedule = &s_;
    if (parts & 8) some.metrics = input_.metrics;
    if (parts & 16) some.memory_limits = {0};
    const std::string page = HtmlReport(some);
    EXPECT_EQ(Unbalanced(page), "") << parts;
    for (const char* bad : {"nan ", "nan<", "nan\"", "nan,", "inf ", "inf<"})
      EXPECT_EQ(page.find(bad), std::string::npos) << parts << bad;
    EXPECT_EQ(page.find("id=\"gap\"") != std::string::npos, (parts & 3) == 3) << parts;
    EXPECT_EQ(page.find("id=\"plot\"") != std::string::npos, (parts & 3) != 0) << parts;
    EXPECT_EQ(page.find("id=\"curves\"") != std::string::npos, (parts & 8) != 0) << parts;
  }
  const Timeline empty;
  HtmlInput nothing;
  nothing.predicted = nothing.measured = &empty;
  EXPECT_EQ(Unbalanced(HtmlReport(nothing)), "");
}

TEST_F(Page, MarksWhereNumbersComeFrom) {
  EXPECT_EQ(HtmlReport(input_).find("mark caution\">"), std::string::npos);
  for (schedule::Event& e : predicted_.events) e.provenance = schedule::Provenance::extrapolated;
  for (schedule::Event& e : measured_.events) e.provenance = schedule::Provenance::emulated;
  input_.uncalibrated = true;
  const std::string page = HtmlReport(input_);
  for (const char* mark : {"extrapolated", "emulated", "uncalibrated"})
    EXPECT_EQ(Count(page, std::string("mark caution\">") + mark), 2u) << mark;  // in the head and in the table
}

TEST_F(Page, SaysWhenMemoryIsOverTheLimit) {
  input_.memory_limits = {30 << 20, 2 << 20};
  const std::string page = HtmlReport(input_);
  EXPECT_NE(page.find("over the limit of 2.00 MiB"), std::string::npos);
  input_.memory_limits.clear();
  EXPECT_NE(HtmlReport(input_).find("its limit is not known"), std::string::npos);
}

TEST_F(Page, ALossThatIsNotANumberIsDrawnAsSuch) {
  input_.metrics.push_back(Step(3, std::numeric_limits<double>::quiet_NaN()));
  input_.metrics.push_back(Step(4, 2));
  const std::string page = HtmlReport(input_);
  EXPECT_NE(page.find("step 3: not finite"), std::string::npos);
  EXPECT_EQ(Unbalanced(page), "");
}

TEST(LargePage, StaysSmallAndSaysWhatWasCut) {
  const auto s = PipelineOf("gpipe", 4, 1, 1000);
  const Timeline one = Scaled(Replayed(s), 0.001);
  HtmlInput input;
  input.title = "large";
  input.predicted = &one;
  std::string page = HtmlReport(input);
  EXPECT_EQ(page.find("is cut in this drawing"), std::string::npos);
  EXPECT_LT(page.size(), 1000000u) << "8000 actions";

  // Steps beyond the limit are left out as a whole.
  Timeline many = one;
  many.events.clear();
  for (int step = 0; step < 30; ++step)
    for (schedule::Event e : one.events) {
      e.step = step;
      e.start += step * 4.0;
      e.end += step * 4.0;
      many.events.push_back(e);
    }
  input.predicted = &many;
  page = HtmlReport(input);
  EXPECT_NE(page.find("200000 of its 240000 actions are shown (25 of 30 steps, 4 of 4 ranks)"), std::string::npos);
  EXPECT_EQ(DataOf(page)["timelines"][0]["events"]["length"].size(), 200000u);
  EXPECT_LT(page.size(), 12000000u);

  // A step that is too long itself: its first ranks.
  const auto wide = PipelineOf("gpipe", 4, 1, 30000);
  const Timeline long_step = Scaled(Replayed(wide), 0.001);
  input.predicted = &long_step;
  page = HtmlReport(input);
  EXPECT_NE(page.find("180000 of its 240000 actions are shown (1 of 1 steps, 3 of 4 ranks)"), std::string::npos);
}

}  // namespace
}  // namespace penstock::report
