#include "base/work_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace penstock {
namespace {

int64_t Count(const std::string& text, char c) { return std::count(text.begin(), text.end(), c); }

TEST(WorkProgress, SaysRateAndTimeLeft) {
  double now = 100;
  std::ostringstream out;
  {
    WorkProgress progress("work", 1000, WorkProgress::Unit::count, {.out = &out, .clock = [&] { return now; }}, 100);
    now += 0.4;
    progress.Update(150);
    EXPECT_EQ(out.str(), "");  // short work says nothing
    now += 1.6;
    progress.Update(300);
    EXPECT_EQ(out.str(), "work: 30 %, 300 of 1 k, 100/s, 7.00 s left\n");
    now += 0.9;
    progress.Update(400);
    now += 0.2;
    progress.Tick();
  }
  EXPECT_EQ(Count(out.str(), '\n'), 2);
}

TEST(WorkProgress, SpeaksWhileTheWorkerCannot) {
  std::ostringstream out;
  WorkProgress progress("work", 10, WorkProgress::Unit::count, {.out = &out});
  progress.TickWhile([] { std::this_thread::sleep_for(std::chrono::milliseconds(700)); });
  EXPECT_EQ(Count(out.str(), '\n'), 1);
  EXPECT_THROW(progress.TickWhile([] { throw UserError("no"); }), UserError);
}

TEST(WorkProgress, RewritesItsLineOnATerminal) {
  double now = 0;
  std::ostringstream out;
  {
    WorkProgress progress("work", 1 << 20, WorkProgress::Unit::bytes,
                          {.out = &out, .terminal = true, .clock = [&] { return now; }});
    for (int i = 1; i <= 30; ++i) {
      now += 0.1;
      progress.Update(i * 1024);
    }
  }
  EXPECT_EQ(Count(out.str(), '\n'), 1);
  EXPECT_GE(Count(out.str(), '\r'), 8);
  EXPECT_NE(out.str().find("10.0 KiB/s"), std::string::npos) << out.str();
}

}  // namespace
}  // namespace penstock
