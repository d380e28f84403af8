#include "report/timeline_io.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/operators.h"
#include "small_timeline.h"

namespace penstock::report {
namespace {

TEST(TimelineIo, ReadsBackToTheSameBits) {
  schedule::Timeline t = Replayed(PipelineOf("1f1b", 3, 1, 4));
  t.title = "a \"title\"\n";
  schedule::Event message;
  message.action.key = {schedule::Kind::send, 1, 2, schedule::FindOp("activation"), {3, 1}, 5, 2};
  message.action.peer_or_group = 2;
  message.action.guard = 0;
  message.action.stream = schedule::Stream::send_channel;
  message.rank = 1;
  message.step = 7;
  message.start = 0.1;
  message.end = 1.0 / 3;
  message.waited = 1e-300;
  message.bytes = int64_t{1} << 60;
  message.provenance = schedule::Provenance::emulated;
  t.events.push_back(message);
  t.memory.push_back({2, 0.3, BufferClass::gradient, Tier::host, 123456789012});
  const std::string text = PrintTimeline(t);
  const schedule::Timeline back = ParseTimeline(text);
  EXPECT_EQ(PrintTimeline(back), text);
  EXPECT_EQ(back.events.size(), t.events.size());
  EXPECT_EQ(back.events.back().action, message.action);
  EXPECT_EQ(back.events.back().end, message.end);
  EXPECT_EQ(back.memory[0].live_bytes, 123456789012);
}

TEST(TimelineIo, ErrorsNameFileAndLine) {
  const auto error = [](std::string_view text) {
    try {
      ParseTimeline(text, "t");
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  const std::string head = "{\"magic\":\"penstock timeline\",\"version\":1,\"title\":\"\",\"num_ranks\":1}\n";
  EXPECT_EQ(error(head), "no error");
  EXPECT_EQ(error("").substr(0, 26), "t:0: there is nothing in i");
  EXPECT_EQ(error("[1]\n"), "t:1: this line is not a JSON object");
  std::string deep(1'000'000, '[');
  deep += std::string(1'000'000, ']');
  EXPECT_EQ(error("{\"magic\":" + deep + "}\n"), "t:1: this line is nested too deep");
  EXPECT_EQ(error("{}\n").substr(0, 27), "t:1: this is not a timeline");
  EXPECT_EQ(error(head + "{\"rank\":0"), "t:2: this line is not a JSON object");
  EXPECT_EQ(error(head + "{\"rank\":1,\"index\":0}"), "t:2: 'rank' is not an integer in 0..0");
  EXPECT_EQ(error(head + "{\"rank\":18446744073709551615}"), "t:2: 'rank' is not an integer in 0..0");
  EXPECT_NE(error(head + "{\"rank\":0,\"index\":0,\"kind\":\"forwrad\"}").find("did you mean 'forward'"),
            std::string::npos);
  EXPECT_EQ(
      error(head +
            "{\"rank\":0,\"index\":0,\"kind\":\"forward\",\"stage\":0,\"stream\":\"compute\",\"start\":2,\"end\":1}"),
      "t:2: 'end' is before 'start'");
}

// Every cut and every overwritten byte is read or refused, never more.
TEST(TimelineIo, DamagedFilesAreReadOrRefused) {
  const std::string text = PrintTimeline(Replayed(PipelineOf("1f1b", 2, 1, 1)));
  for (size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'\0', '"', '9', '-', '\n', '\xff'}) {
      std::string damaged = text;
      damaged[i] = c;
      try {
        ParseTimeline(damaged);
      } catch (const UserError&) {
      }
    }
    try {
      ParseTimeline(text.substr(0, i));
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace penstock::report
