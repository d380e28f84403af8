// A run directory explains itself, and its tokenizer goes with the weights.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "paths.h"
#include "report/metrics.h"
#include "report/run_files.h"
#include "session/run/find_tokenizer.h"
#include "session/run/run_readme.h"
#include "session/run/tiny_run.h"

namespace penstock::session {
namespace {

namespace fs = std::filesystem;

// Every file that a run leaves is named, and so is every folder; nothing is promised that is not there.
TEST(RunReadme, NamesWhatIsThere) {
  const TinyRun run({"log.tensorboard=true", "train.sample_tokens=3", "train.sample_prompt='x'"});
  const std::string readme = ReadFile(run.path() + "/" + kRunReadme);
  const std::string page = ReadFile(SourceFolder() + "/docs/run_directory.md");
  for (const auto& entry : fs::directory_iterator(run.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_NE(page.find("\n| `" + name), std::string::npos) << name;
    if (name == kRunReadme) continue;
    EXPECT_NE(readme.find("\n  " + name), std::string::npos) << name;
  }
  for (size_t at = readme.find("What lies here"); (at = readme.find("\n  ", at)) != std::string::npos; ++at) {
    const std::string name = readme.substr(at + 3, readme.find(' ', at + 3) - at - 3);
    if (name == "start_checkpoint") continue;  // "when the run did not begin with initial ones"
    EXPECT_TRUE(fs::exists(run.path() + "/" + name)) << name;
  }
  EXPECT_EQ(readme.find("tokenizer/"), std::string::npos);  // bytes need no file
  for (const char* command : {"train ", "report ", "generate ", "eval ", "checkpoint inspect "})
    EXPECT_NE(readme.find(std::string("  penstock ") + command), std::string::npos) << command;
  EXPECT_FALSE(fs::exists(run.path() + "/tokenizer"));
}

// The command of the file, taken by its words, goes on with the run.
TEST(RunReadme, ItsCommandGoesOnWithTheRun) {
  TinyRun run({"run.overwrite=true", "checkpoint.resume='never'"});
  const std::string readme = ReadFile(run.path() + "/" + kRunReadme);
  const size_t at = readme.find("penstock train ");
  ASSERT_NE(at, std::string::npos);
  const std::string line = readme.substr(at, readme.find('\n', at) - at);
  EXPECT_EQ(line, fmt::format("penstock train {0}/config.toml --set 'run.dir='\\''{0}'\\''' run.overwrite=false "
                              "checkpoint.resume=auto",
                              run.path()));
  std::ostringstream out, log;
  const TrainOptions options{
      .config = run.path() + "/config.toml",
      .assignments = {"run.dir='" + run.path() + "'", "run.overwrite=false", "checkpoint.resume=auto", "train.steps=6"},
      .json = true};
  EXPECT_EQ(RunTrain(options, out, log), 0);
  EXPECT_NE(log.str().find("at step 4"), std::string::npos) << log.str();
  const auto metrics = report::ReadMetrics(run.path() + "/" + std::string(report::kMetricsFile));
  ASSERT_EQ(metrics.size(), 6u);
  for (size_t i = 0; i < metrics.size(); ++i) EXPECT_EQ(metrics[i].step, static_cast<int64_t>(i) + 1);
  const std::string table = ReadFile(run.path() + "/" + std::string(report::kCsvFile));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 7);
}

class OtherTokenizer : public tokenizer::ByteTokenizer {
 public:
  std::string Fingerprint() const override { return "other"; }
  std::vector<tokenizer::TokenizerFile> files() const override { return {{"a.json", "{}"}, {"b.txt", "b"}}; }
};

TEST(FindTokenizer, BesideTheWeightsFirst) {
  const checkpoint::TemporaryDirectory folder;
  const std::string step = folder / "run/checkpoints/step-1";
  FileSystem::Real().CreateFolders(step);
  EXPECT_EQ(FindTokenizer(step, "bytes"), "bytes");
  EXPECT_EQ(FindTokenizer(step, "somewhere/else.json"), "somewhere/else.json");
  WriteTokenizer(folder / "run", OtherTokenizer());
  EXPECT_EQ(ReadFile(folder / "run/tokenizer/a.json"), "{}");
  EXPECT_EQ(ReadFile(folder / "run/tokenizer/b.txt"), "b");
  EXPECT_EQ(FindTokenizer(step, "somewhere/else.json"), folder / "run/tokenizer");
  EXPECT_EQ(FindTokenizer(step + "/", "somewhere/else.json"), folder / "run/tokenizer");
  EXPECT_EQ(FindTokenizer(step, "bytes"), "bytes");
  WriteTokenizer(step, OtherTokenizer());
  EXPECT_EQ(FindTokenizer(step, "somewhere/else.json"), step + "/tokenizer");
}

TEST(FindTokenizer, AnotherOneThanTheWeightsWereTrainedWithIsRefused) {
  checkpoint::TrainState state;
  EXPECT_NO_THROW(RequireTokenizer(state, "c", OtherTokenizer()));
  state.extra[kTokenizerFingerprint] = "other";
  EXPECT_NO_THROW(RequireTokenizer(state, "c", OtherTokenizer()));
  EXPECT_THROW(RequireTokenizer(state, "c", tokenizer::ByteTokenizer()), UserError);
}

}  // namespace
}  // namespace penstock::session
