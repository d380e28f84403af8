// The text form: what hand-written files may leave out, exact round trips, errors, and mutated input.
#include "schedule/text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "schedule/random_schedule.h"

namespace penstock::schedule {
namespace {

std::string ErrorOf(std::string_view text) {
  try {
    ParseSchedule(text, "x.txt");
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}
void ExpectError(std::string_view text, std::string_view start, std::string_view part = "") {
  const std::string error = ErrorOf(text);
  EXPECT_EQ(error.substr(0, start.size()), start) << text;
  EXPECT_NE(error.find(part), std::string::npos) << error;
}
const std::string kHead = "penstock schedule 1\n";

TEST(ScheduleText, RanksAndComputeAreEnough) {
  const Schedule s = ParseSchedule(
      "penstock schedule 1\n"
      "# one forward, one backward\n"
      "rank 0: F0 F1 B0 B1\r\n"
      "rank 1: F0 B0   # the loss is here\n"
      "  forward 1.1\n"
      "  B 1.1\n");
  EXPECT_EQ(s.name, "hand-written");
  EXPECT_EQ(s.num_ranks(), 2);
  EXPECT_EQ(s.graph, StageGraph::Chain(2));
  EXPECT_EQ(s.num_micro_batches(), 2);
  EXPECT_EQ(s.route.pipeline_size, 2);
  EXPECT_EQ(s.route.placements, (std::vector<std::vector<int>>{{0, 1}}));
  EXPECT_EQ(s.stage_options.size(), 2u);
  ASSERT_EQ(s.ranks[1].size(), 4u);
  EXPECT_EQ(ToString(s.ranks[1][1]), "backward 1.0");
  EXPECT_EQ(ToString(s.ranks[1][2]), "forward 1.1");
  EXPECT_EQ(s.ranks[1][2].stream, Stream::compute);
  ASSERT_EQ(s.holders.units.size(), 2u);
  EXPECT_EQ(s.groups[s.holders.units[1].group], (std::vector<int32_t>{1}));
}

TEST(ScheduleText, ReplicasSharedParametersAndMessagesFollowFromTheRoute) {
  const Schedule s = ParseSchedule(
      "penstock schedule 1\n"
      "replicas 2\n"
      "shared 0 1\n"
      "rank 0: F0\n  send:activation 0.0\n  recv:gradient 1.0\n  B0\n  collective:reduce 0 group={0,2}\n"
      "rank 1\n  recv:activation 0.0\n  F0 B0\n  send:gradient 1.0\n"
      "rank 2: F1 B1\n"
      "rank 3: F1 B1\n");
  EXPECT_EQ(s.route.pipeline_size, 2);
  EXPECT_EQ(s.route.replica_of, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(s.ranks[0][1].peer_or_group, 1);
  EXPECT_EQ(s.ranks[0][2].peer_or_group, 1);
  EXPECT_EQ(s.ranks[1][0].peer_or_group, 0);
  EXPECT_EQ(s.ranks[1][3].peer_or_group, 0);
  EXPECT_EQ(s.ranks[0][4].stream, Stream::group_queue);
  ASSERT_EQ(s.holders.units.size(), 3u);
  EXPECT_EQ(s.groups[s.holders.units[0].group], (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(s.holders.units[2].uses.size(), 2u);
  EXPECT_EQ(s.groups[s.holders.units[2].group], (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(ParseSchedule(PrintSchedule(s)), s);
}

TEST(ScheduleText, PrintsWhatDoesNotFollow) {
  const Schedule s = ParseSchedule(
      "penstock schedule 1\nname toy\nrank 0: F0\n send:activation 0.0 ->1 bytes=64\nrank 1\n recv:activation 0.0 <- 0 "
      "after=0:1\n F0\n");
  EXPECT_EQ(PrintSchedule(s),
            "penstock schedule 1\n"
            "name toy\n"
            "stages 2\n"
            "micro-batches 1\n"
            "pipeline 2\n"
            "placement linear\n"
            "group 0 = 0\n"
            "group 1 = 1\n"
            "size \"64\" 64\n"
            "\n"
            "rank 0\n"
            "  forward 0.0                                       compute\n"
            "  send:activation 0.0 ->1 bytes=\"64\"                send\n"
            "\n"
            "rank 1\n"
            "  recv:activation 0.0 <-0 after=0:1                 recv\n"
            "  forward 1.0                                       compute\n");
}

TEST(ScheduleText, CompactFormIsAFileOfItsOwn) {
  const std::string linear = "penstock schedule 1\nname toy\nrank 0: F0 F1 B0 B1\nrank 1: F0 B0 F1 B1\n";
  EXPECT_EQ(PrintComputeCompact(ParseSchedule(linear)), linear);
  const std::string loop =
      "penstock schedule 1\nname \"a toy\"\nreplicas 2\nrank 0: 0F0 2F0 2I0 2W0 0R0 0B0\nrank 1: 1F0 1B0\nrank 2: "
      "0F1\nrank 3: 1F1\n";
  const Schedule s = ParseSchedule(loop);
  EXPECT_EQ(PrintComputeCompact(s), loop);
  EXPECT_EQ(s.route.placements[0], (std::vector<int>{0, 1, 0}));
  EXPECT_TRUE(s.stage_options[0].recompute);
  EXPECT_FALSE(s.stage_options[2].recompute);
}

TEST(ScheduleText, ErrorsNameFileAndLineAndWhatWouldWork) {
  ExpectError("", "x.txt:0: there is nothing in it", "'penstock schedule 1'");
  ExpectError("schedule\n", "x.txt:1: this is not a schedule", "'penstock schedule 1'");
  ExpectError("penstock schedule 2\n", "x.txt:1: schedule format version 2; this build reads version 1");
  ExpectError(kHead, "x.txt:1: there is no 'rank' list");
  ExpectError(kHead + "stagse 4\n", "x.txt:2: 'stagse' is no key", "did you mean 'stages'?");
  ExpectError(kHead + "stages 4\nstages 4\n", "x.txt:3: 'stages' is said a second time", "line 2");
  ExpectError(kHead + "stages x\n", "x.txt:2: stages 'x' is not an integer in 0..65535");
  ExpectError(kHead + "stages\n", "x.txt:2: a number is missing");
  ExpectError(kHead + "stages 1 2\n", "x.txt:2: '2' is one word too many");
  ExpectError(kHead + "name \"a\n", "x.txt:2: a string starts with");
  ExpectError(kHead + "F0\n", "x.txt:2: action 'F0' stands before the first 'rank' line");
  ExpectError(kHead + "rank 1\n", "x.txt:2: rank 1 stands where rank 0 is due");
  ExpectError(kHead + "rank 0: F0 B\n", "x.txt:2: 'B' is not an action of the short form");
  ExpectError(kHead + "rank 0\n forwrad 0.0\n", "x.txt:3: 'forwrad' is not a kind of action",
              "did you mean 'forward'?");
  ExpectError(kHead + "rank 0\n send:activaton 0.0 ->0\n", "x.txt:3: 'activaton' is no operator of a send",
              "did you mean 'activation'?");
  ExpectError(kHead + "rank 0\n send:reduce 0.0 ->0\n", "x.txt:3: 'reduce' is no operator of a send");
  ExpectError(kHead + "rank 0\n send 0.0 ->0\n", "x.txt:3: send needs an operator", "activation");
  ExpectError(kHead + "rank 0\n forward:activation 0.0\n", "x.txt:3: forward takes no operator");
  ExpectError(kHead + "rank 0\n forward 0\n", "x.txt:3: forward needs a micro-batch");
  ExpectError(kHead + "rank 0\n forward\n", "x.txt:3: forward needs a unit");
  ExpectError(kHead + "rank 0\n update 0 strem\n", "x.txt:3: 'strem' is not a stream");
  ExpectError(kHead + "rank 0\n update 0 compute x\n", "x.txt:3: 'compute' is not understood here");
  ExpectError(kHead + "rank 0\n update 0 befor=3\n", "x.txt:3: 'befor' is no word of an action");
  ExpectError(kHead + "rank 0\nstages 3\n", "x.txt:3: 'stages' belongs into the head");
  ExpectError(kHead + "rank 0\n collective:reduce 0\n", "x.txt:3: a collective needs its group");
  ExpectError(kHead + "rank 0\n collective:reduce 0 group=1\n",
              "x.txt:3: group '1' is named, but there is no 'group' line");
  ExpectError(kHead + "rank 0: F0\n collective:reduce 0 group={0,3}\n", "x.txt:3: rank 3 of a group is not in 0..0");
  ExpectError(kHead + "rank 0: F0\n collective:reduce 0 group={0,0}\n", "x.txt:3: ranks of a group ascend");
  ExpectError(kHead + "rank 0: F0\n send:activation 0.0 ->1\nrank 1: F0\n send:activation 0.0 ->2\n",
              "x.txt:5: rank 2 is not in 0..1");
  ExpectError(kHead + "rank 0: F0\n send:activation 0.0\n", "x.txt:3: which edge of the stage graph");
  ExpectError(kHead + "rank 0: F0\n send:activation 0.0 part=3\n", "x.txt:3: the other side of this message");
  ExpectError(kHead + "rank 0: F0\n send:activation 0.0 <-0\n", "x.txt:3: '<-' is of a recv, not of a send");
  ExpectError(kHead + "rank 0: F0\n update 7\n", "x.txt:3: unit 7 is not in 0..0");
  ExpectError(kHead + "micro-batches 2\nrank 0: F0 F2\n", "x.txt:3: micro-batch 2 is not in 0..1");
  ExpectError(kHead + "stages 2\nrank 0: 0F0\n", "x.txt:3: no rank computes on stage 1", "linear, block, loop, v");
  ExpectError(kHead + "placement zigzag\nrank 0: F0\n", "x.txt:2: 'zigzag' is not a placement", "loop");
  ExpectError(kHead + "placement v\nrank 0: F0\n", "x.txt:2: placement 'v' needs 2 stages");
  ExpectError(kHead + "edge 0 -> 1\nedge 1 -> 0\nrank 0: 0F0 1F0\n", "x.txt:2: the stage graph has a cycle");
  ExpectError(kHead + "replicas 2\nrank 0: F0\n", "x.txt:2: 1 ranks are no multiple of 2 replicas");
  ExpectError(kHead + "rank 0: F0\n update 0 after=0:5\n", "x.txt:3: there is no action 0:5");
  ExpectError(kHead + "rank 0: F0\n update 0 bytes=big\n", "x.txt:3: there is no size 'big'");
  ExpectError(kHead + "ranks 2\nrank 0: F0\n", "x.txt:3: the file ends after 1 'rank' lists, but line 2 says 2 ranks");
}

TEST(ScheduleText, FewCharactersCannotAskForMuch) {
  ExpectError(kHead + "stages 99999999999999999999\n", "x.txt:2: stages");
  ExpectError(kHead + "replica-of 0*99999999\n", "x.txt:2: repetition '99999999'");
  std::string many = kHead;
  for (int i = 0; i < 40; ++i) many += "placement 0*1000000\n";
  ExpectError(many, "x.txt:18: ranges and repetitions of this file");
  // Linear, not quadratic: 200,000 lines of one rank, each with another dependency.
  std::string deep = kHead + "rank 0\n";
  for (int i = 0; i < 200000; ++i) deep += "F 0.0 after=0:" + std::to_string(i) + "\n";
  EXPECT_EQ(ParseSchedule(deep).edges.size(), 200000u);
  std::string wide = kHead + "override 0.0 -> 0\nmicro-batches 1000000\nstages 60000\nplacement 0*60000\nrank 0: 0F0\n";
  EXPECT_EQ(ParseSchedule(wide).holders.units.size(), 60000u);
}

void RoundTrips(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Schedule s = RandomSchedule(seed).Make();
    const std::string text = PrintSchedule(s);
    try {
      ASSERT_EQ(ParseSchedule(text) == s, true) << "seed " << seed << "\n"
                                                << text << "\nagain:\n"
                                                << PrintSchedule(ParseSchedule(text));
    } catch (const UserError& e) {
      FAIL() << "seed " << seed << ": " << e.what() << "\n" << text;
    }
  }
}

// Takes away, doubles, swaps and overwrites characters, words and lines of `text`.
std::string Mutate(std::string text, RandomSchedule& random) {
  static const std::vector<std::string> words = {"rank 0\n",
                                                 "stages 65535\n",
                                                 "0*16777216",
                                                 "0..1048575",
                                                 "-1",
                                                 "99999999999",
                                                 "\"",
                                                 "#",
                                                 "\n",
                                                 "\0",
                                                 "c0/",
                                                 "->",
                                                 "<-",
                                                 "after=0:0",
                                                 "group={",
                                                 "none",
                                                 "=",
                                                 "@",
                                                 "edge 0 -> 1\n",
                                                 "placement v\n",
                                                 "replicas 2\n",
                                                 "shared 0 0\n",
                                                 "F0 ",
                                                 "R",
                                                 "unit 0\n",
                                                 "\xff\xfe",
                                                 "edge-table 0:0\n"};
  for (int n = random.Int(1, 6); n > 0; --n) {
    const size_t at = random.Int(0, static_cast<int>(text.size()));
    const size_t length = std::min<size_t>(text.size() - at, random.Int(0, 20));
    switch (random.Int(0, 4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(random.Int(0, static_cast<int>(text.size())), 30));
        break;
      case 2:
        text.insert(at, words[random.Int(0, static_cast<int>(words.size()) - 1)]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(random.Int(0, 255));
        break;
      case 4:
        text.replace(at, length, std::to_string(random.Int(-3, 70000)));
        break;
    }
  }
  return text;
}

// A mutated file is refused with a UserError, or is a schedule that prints and reads back.
void Fuzz(uint64_t first, uint64_t count) {
  int accepted = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomSchedule random(seed);
    std::string text = PrintSchedule(random.Make());
    const std::string mutated = Mutate(text, random);
    try {
      const Schedule s = ParseSchedule(mutated);
      ++accepted;
      ASSERT_TRUE(ParseSchedule(PrintSchedule(s)) == s) << "seed " << seed << "\n"
                                                        << mutated << "\nprinted\n"
                                                        << PrintSchedule(s);
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, static_cast<int>(count));
}

TEST(ScheduleText, RoundTripsRandomSchedules) { RoundTrips(1, 500); }
TEST(ScheduleText, MutatedFilesAreRefusedOrRead) { Fuzz(1, 2000); }

TEST(LongScheduleText, RoundTripsRandomSchedules) { RoundTrips(1000, 50000); }
TEST(LongScheduleText, MutatedFilesAreRefusedOrRead) { Fuzz(1000000, 300000); }

}  // namespace
}  // namespace penstock::schedule
