// SVG and Chrome trace.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "report/chrome_trace.h"
#include "report/svg.h"
#include "schedule/operators.h"
#include "small_timeline.h"

namespace penstock::report {
namespace {

size_t Count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Svg, HasABoxPerActionAndSaysTheBubble) {
  schedule::Timeline t = Replayed(PipelineOf("1f1b", 4, 1, 8));
  t.title = "a < b & c";
  const std::string svg = DrawSvg(t, {.seconds = false});
  EXPECT_EQ(Count(svg, "<title>"), 64u);
  EXPECT_EQ(Count(svg, ">rank "), 4u);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find("makespan 33"), std::string::npos);
  EXPECT_NE(svg.find("bubble 27.3 %"), std::string::npos);
  EXPECT_NE(svg.find("forward 0.0"), std::string::npos);
}

TEST(Svg, MergesWhatNobodyCouldSee) {
  const schedule::Timeline t = Replayed(PipelineOf("gpipe", 2, 1, 20000));
  EXPECT_LT(DrawSvg(t).size(), 1000000u);
  EXPECT_EQ(Count(DrawSvg({}), "<title>"), 0u);  // nothing in it is a picture, too
}

TEST(ChromeTrace, IsValidJsonWithLanesArrowsAndCounters) {
  schedule::Timeline predicted = Replayed(PipelineOf("1f1b", 2, 1, 2));
  predicted.title = "predicted";
  schedule::Timeline measured = predicted;
  measured.title = "measured \"run\"";
  for (const bool sends : {true, false}) {
    schedule::Event e;
    e.rank = sends ? 0 : 1;
    e.action.key = {
        sends ? schedule::Kind::send : schedule::Kind::recv, 0, 0, schedule::FindOp("activation"), {0, 0}, 0, 0};
    e.action.peer_or_group = 1 - e.rank;
    e.action.stream = schedule::DefaultStream(e.action.key.kind);
    e.start = 1;
    e.end = 1.5;
    e.waited = sends ? 0 : 0.25;
    measured.events.push_back(e);
  }
  measured.memory.push_back({0, 0.5, BufferClass::activation, Tier::device, 100});
  measured.memory.push_back({0, 1.5, BufferClass::gradient, Tier::device, 50});

  const auto json = nlohmann::json::parse(ChromeTrace({&predicted, &measured}));
  std::map<std::string, int> phases;
  std::map<int, std::string> processes;
  for (const auto& e : json.at("traceEvents")) {
    ++phases[e.at("ph").get<std::string>()];
    if (e.at("name") == "process_name") processes[e.at("pid").get<int>()] = e.at("args").at("name").get<std::string>();
    if (e.at("ph") == "C" && e.at("ts").get<double>() == 1.5e6) {
      EXPECT_EQ(e.at("args").at("activation"), 100);
      EXPECT_EQ(e.at("args").at("gradient"), 50);
    }
  }
  EXPECT_EQ(phases["X"], 8 + 8 + 2 + 1);  // events, messages, one wait
  EXPECT_EQ(phases["s"], 1);
  EXPECT_EQ(phases["f"], 1);
  EXPECT_EQ(phases["C"], 2);
  EXPECT_EQ(processes, (std::map<int, std::string>{{0, "predicted rank 0"},
                                                   {1, "predicted rank 1"},
                                                   {2, "measured \"run\" rank 0"},
                                                   {3, "measured \"run\" rank 1"}}));
}

// A run is recorded from when it began, a prediction from 0: in one trace both begin together (case C9).
TEST(ChromeTrace, TimelinesBeginTogether) {
  const schedule::Timeline predicted = Replayed(PipelineOf("1f1b", 2, 1, 2));
  schedule::Timeline measured = predicted;
  for (auto& e : measured.events) {
    e.start += 7;
    e.end += 7;
  }
  measured.memory.push_back({0, 6.5, BufferClass::parameter, Tier::device, 10});
  std::map<int, std::pair<double, double>> spans;  // process -> first start, last end
  const auto json = nlohmann::json::parse(ChromeTrace({&predicted, &measured}));
  for (const auto& e : json.at("traceEvents")) {
    if (e.at("ph") == "C") {
      EXPECT_EQ(e.at("ts"), 0.0);
    }
    if (e.at("ph") != "X") continue;
    const double start = e.at("ts").get<double>(), end = start + e.at("dur").get<double>();
    auto [it, added] = spans.try_emplace(e.at("pid").get<int>() % 2 + 10 * (e.at("pid").get<int>() / 2), start, end);
    it->second = {std::min(it->second.first, start), std::max(it->second.second, end)};
  }
  ASSERT_EQ(spans.size(), 4u);
  for (const int rank : {0, 1}) EXPECT_EQ(spans[rank], spans[10 + rank]);
  EXPECT_EQ(spans[0].first, 0);
}

}  // namespace
}  // namespace penstock::report
