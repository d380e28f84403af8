#include "report/advice.h"

#include <gtest/gtest.h>

#include "small_timeline.h"

namespace penstock::report {
namespace {

using schedule::Timeline;

std::vector<Advice> Of(const Timeline& t, const schedule::Schedule& s, double memory_share = 0) {
  return AdviceFor(t, CriticalPath(t, 0, s.graph), FindBubbles(t, s.graph), memory_share);
}

// The GPipe of tests/report/bubbles_test.cc: warm-up and drain 3.5 on rank 1 and none on rank 0; messages 2 x 0.25 of
// the path of 9.5; both ranks compute 6.
TEST(Advice, SaysWhatAStepByHandLoses) {
  const auto s = PipelineOf("gpipe", 2, 1, 2);
  const auto all = Of(Replayed(s, Rational(1, 4)), s);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_DOUBLE_EQ(all[0].seconds, 1.75);
  EXPECT_EQ(all[0].text.rfind("Warm-up and drain", 0), 0u) << all[0].text;
  EXPECT_DOUBLE_EQ(all[1].seconds, 0.5);
  EXPECT_EQ(all[1].text.rfind("Messages", 0), 0u) << all[1].text;
}

// One rank that recomputes: nothing else to gain. A slow rank: the split.
TEST(Advice, NamesRecomputationAndTheBusiestRank) {
  const auto s = PipelineOf("gpipe", 2, 1, 2);
  Timeline t = Replayed(s, 0);
  for (schedule::Event& e : t.events)
    if (e.action.key.kind == schedule::Kind::forward && e.rank == 1 && e.action.key.micro_batch == 1)
      e.action.key.kind = schedule::Kind::recompute;
  const auto found = [](const std::vector<Advice>& all, const std::string& word) -> const Advice* {
    for (const Advice& a : all)
      if (a.text.find(word) != std::string::npos) return &a;
    return nullptr;
  };
  const Advice* recompute = nullptr;
  const auto with_memory = Of(t, s, 0.5);
  ASSERT_NE(recompute = found(with_memory, "Recomputation takes"), nullptr);
  EXPECT_GT(recompute->seconds, 0);
  EXPECT_NE(recompute->text.find("memory is at 50.0 % of the limit"), std::string::npos) << recompute->text;
  EXPECT_EQ(found(with_memory, "evenly"), nullptr);

  Timeline slow = Replayed(s, 0);
  slow.events.clear();
  schedule::Event e;
  e.action.key.kind = schedule::Kind::forward;
  e.action.key.micro_batch = 0;
  for (int rank = 0; rank < 2; ++rank) {
    e.rank = rank;
    e.action.key.unit.stage = static_cast<uint16_t>(rank);
    e.start = rank == 0 ? 0 : 3;
    e.end = rank == 0 ? 3 : 4;
    slow.events.push_back(e);
  }
  const auto uneven = Of(slow, s);
  const Advice* split = found(uneven, "evenly");
  ASSERT_NE(split, nullptr);
  EXPECT_DOUBLE_EQ(split->seconds, 1);  // 3 against a mean of 2
  EXPECT_NE(split->text.find("Rank 0 computes"), std::string::npos);
}

TEST(Advice, NothingFromNothing) {
  const auto s = PipelineOf("gpipe", 1, 1, 1);
  EXPECT_TRUE(Of(Replayed(s, 0), s).empty());  // one rank that computes all the time
  EXPECT_TRUE(AdviceFor({}, {}, {}, 0).empty());
}

}  // namespace
}  // namespace penstock::report
