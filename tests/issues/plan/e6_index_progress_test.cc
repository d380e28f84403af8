// Case E6, https://github.com/NVIDIA/Megatron-LM/issues/2124: a run that builds the index of millions of short
// documents looks stuck. Here it says every second how far it is, how fast and how long it still takes; the second
// start finds the index; whoever waits for another process says for whom.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <thread>

#include "base/file_lock.h"
#include "data/config.h"
#include "data/token_file.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

class IndexOfShortDocuments {
 public:
  explicit IndexOfShortDocuments(int64_t documents) : documents_(documents) {
    folder_ = testing::TempDir() + "/penstock_e6_" + std::to_string(documents);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    // Documents of 3 to 9 tokens and their end.
    std::vector<int64_t> ends;
    std::vector<int32_t> ids;
    int64_t tokens = 0;
    for (int64_t d = 0; d < documents; ++d) ends.push_back(tokens += 4 + d % 7);
    TokenFileWriter writer(folder_ + "/train.tokens", {.tokenizer = "bytes",
                                                       .fingerprint = "bytes",
                                                       .vocabulary = 256,
                                                       .end_of_document = 0,
                                                       .tokens = tokens,
                                                       .documents = documents});
    for (int64_t d = 0; d < documents; ++d) {
      ids.assign(static_cast<size_t>(3 + d % 7), static_cast<int32_t>(1 + d % 200));
      ids.push_back(0);
      writer.AppendTokens(ids);
    }
    writer.AppendDocumentEnds(ends);
    writer.Commit();
    config_.source = "tokens";
    config_.path = folder_;
    config_.packing = Packing::kWithin;
    config_.sequence = 4;
  }
  ~IndexOfShortDocuments() { fs::remove_all(folder_); }

  // What is said while the data is opened; every look at the clock takes `tick` seconds (0: the real clock).
  std::string Open(double tick) const {
    std::ostringstream log;
    double now = 0;
    ProgressSink sink{.out = &log};
    if (tick > 0) sink.clock = [&now, tick] { return now += tick; };
    const TextData data = LoadTextData(config_, 0, sink);
    EXPECT_EQ(data.documents, documents_);
    EXPECT_GE(data.train->size(), documents_);
    EXPECT_EQ(data.train->Length(data.train->size() - 1), data.train->Get(data.train->size() - 1).tokens.size());
    return log.str();
  }
  const std::string& folder() const { return folder_; }
  const DataConfig& config() const { return config_; }

 private:
  int64_t documents_;
  std::string folder_;
  DataConfig config_;
};

void ExpectRateAndTimeLeft(const std::string& log, const std::string& what) {
  std::istringstream lines(log);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(what, 0) != 0 || line.find("': 0 %, 0 of ") != std::string::npos) continue;
    ++count;
    EXPECT_TRUE(std::regex_search(line, std::regex("': \\d+ %, .* of .*, .*/s, .* left$"))) << line;
  }
  EXPECT_GE(count, 2) << log;
}

TEST(IssueE6, SaysHowFarItIsAndIsKept) {
  const IndexOfShortDocuments index(200'000);
  const std::string first = index.Open(/*tick=*/1.1);
  ExpectRateAndTimeLeft(first, "check of '");
  ExpectRateAndTimeLeft(first, "index of '");
  EXPECT_EQ(index.Open(0.3), "");  // the second start has nothing to build
}

TEST(IssueE6, AnotherProcessSaysForWhomItWaits) {
  const IndexOfShortDocuments index(1000);
  auto lock = FileLock::Try(index.folder() + "/train.tokens.index.lock");
  ASSERT_NE(lock, nullptr);
  std::thread builder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    lock.reset();
  });
  const std::string log = index.Open(0);
  builder.join();
  EXPECT_EQ(log.rfind("waiting for process " + std::to_string(::getpid()) + " on ", 0), 0u) << log;
}

int64_t StatusKiB(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == field) {
      int64_t kib = 0;
      status >> kib;
      return kib;
    }
  return -1;
}

// The report's size, on the clock of the machine. In a process of its own, whose peak memory is its own.
TEST(IssueE6, FiveMillionShortDocuments) {
  const IndexOfShortDocuments index(5'000'000);
  for (const bool cached : {false, true}) {
    std::cout << std::flush;
    const pid_t child = ::fork();
    if (child == 0) {
      const int64_t before = StatusKiB("VmRSS:");
      const auto start = std::chrono::steady_clock::now();
      const std::string log = index.Open(0);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const int64_t more = (StatusKiB("VmHWM:") - before) / 1024;
      std::cout << (cached ? "second" : "first") << " start: " << seconds << " s, " << more << " MiB more memory\n"
                << log << std::flush;
      int code = 0;
      // A line for every two seconds; and none of the second start, which has nothing to build.
      if (!cached && std::count(log.begin(), log.end(), '\n') + 1 < static_cast<int64_t>(seconds / 2)) code = 1;
      if (cached && !log.empty()) code = 2;
      if (before < 0 || more > (cached ? 30 : 150)) code = 3;
      ::_exit(testing::Test::HasFailure() ? 4 : code);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  }
}

}  // namespace
}  // namespace penstock::data
