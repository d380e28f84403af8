#include "data/corpus.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "data/config.h"

namespace penstock::data {
namespace {

class CorpusTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/penstock_corpus_test_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + name).parent_path());
    WriteFileAtomically(folder_ + "/" + name, text, true);
  }
  std::string Fault(const std::string& path, const CorpusOptions& options = {}) {
    try {
      LoadText(path, options);
    } catch (const UserError& error) {
      return error.what();
    }
    return "loaded";
  }

  static const TokenStream& StreamOf(const std::shared_ptr<const Dataset>& windows) {
    return dynamic_cast<const TextWindows&>(*windows).stream();
  }

  std::string folder_;
};

TEST(Glob, Matches) {
  EXPECT_TRUE(GlobMatches("*.py", "a/b/c.py"));
  EXPECT_TRUE(GlobMatches("*", "a/b"));
  EXPECT_TRUE(GlobMatches("a/*.py", "a/b.py"));
  EXPECT_FALSE(GlobMatches("a/*.py", "a/b/c.py"));
  EXPECT_TRUE(GlobMatches("a/**", "a/b/c.py"));
  EXPECT_TRUE(GlobMatches("**/test/**", "x/test/y"));
  EXPECT_TRUE(GlobMatches("?.txt", "a.txt"));
  EXPECT_FALSE(GlobMatches("?.txt", "ab.txt"));
  EXPECT_FALSE(GlobMatches("*.py", "a.pyc"));
  EXPECT_FALSE(GlobMatches("", "a"));
}

TEST(Text, BinaryIsRecognised) {
  EXPECT_EQ(WhyNotText("plain \t\r\n text, \xc3\xa9 and \xe6\xbc\xa2"), "");
  EXPECT_EQ(WhyNotText("a few caf\xe9 in Latin-1"), "");
  EXPECT_EQ(WhyNotText(""), "");
  EXPECT_NE(WhyNotText(std::string("a\0b", 3)), "");
  EXPECT_NE(WhyNotText("\x89\xff\xd8\x01\x02 abc"), "");
}

TEST_F(CorpusTest, LinksAreFollowedButNotUpwards) {
  Put("in/real/a.txt", "1");
  Put("elsewhere/b.txt", "2");
  std::filesystem::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/in/linked");
  std::filesystem::create_directory_symlink("..", folder_ + "/in/real/up");
  std::filesystem::create_directory_symlink(folder_ + "/in/linked", folder_ + "/elsewhere/self");
  std::filesystem::create_symlink("nowhere", folder_ + "/in/gone.txt");
  std::vector<std::string> names;
  for (const FoundFile& file : FindFiles(folder_ + "/in", {.include = {"*.txt"}})) names.push_back(file.name);
  EXPECT_EQ(names, (std::vector<std::string>{"linked/b.txt", "real/a.txt"}));
}

TEST_F(CorpusTest, FolderIsSortedByPath) {
  Put("b.txt", "2");
  Put("a/z.txt", "1");
  Put("a.txt", "0");
  Put("c.md", "no");
  Put("empty.txt", "");
  const Corpus corpus = LoadText(folder_, {.include = {"*.txt"}});
  ASSERT_EQ(corpus.documents.size(), 3u);
  EXPECT_EQ(corpus.documents[0].name, "a.txt");
  EXPECT_EQ(corpus.documents[1].name, "a/z.txt");
  EXPECT_EQ(corpus.documents[2].name, "b.txt");
  EXPECT_EQ(corpus.bytes, 3);
  EXPECT_EQ(LoadText(folder_, {.exclude = {"a/**", "*.md"}}).documents.size(), 2u);
  const Corpus cut = LoadText(folder_, {.include = {"*.txt"}, .max_bytes = 2});
  EXPECT_EQ(cut.documents.size(), 2u);
  EXPECT_EQ(cut.skipped_documents, 1);
}

TEST_F(CorpusTest, SingleFile) {
  Put("x.anything", "text");
  const Corpus corpus = LoadText(folder_ + "/x.anything");
  EXPECT_EQ(corpus.documents[0].name, "x.anything");
  EXPECT_EQ(corpus.documents[0].text, "text");
}

TEST_F(CorpusTest, BadInputSaysWhatWouldWork) {
  EXPECT_NE(Fault(folder_ + "/none").find("is not there; give a text file"), std::string::npos);
  EXPECT_NE(Fault(folder_).find("has no file"), std::string::npos);
  Put("good.txt", "good");
  Put("model.bin", std::string("\x7f"
                               "ELF\0\0",
                               6));
  EXPECT_NE(
      Fault(folder_).find(
          "model.bin' is not text: it has NUL bytes (the first at 4); narrow the files of the folder (data.include,"),
      std::string::npos)
      << Fault(folder_);
  EXPECT_EQ(Fault(folder_, {.include = {"*.txt"}}), "loaded");
  EXPECT_NE(Fault(folder_ + "/good.txt", {.max_bytes = 3}).find("data.max_bytes"), std::string::npos);
  EXPECT_NE(Fault(folder_, {.max_bytes = 3}).find("data.max_bytes"), std::string::npos);
  Put("empty", "");
  EXPECT_NE(Fault(folder_ + "/empty").find("is empty"), std::string::npos);
}

TEST_F(CorpusTest, ValidationIsTheTail) {
  for (int i = 0; i < 10; ++i) Put(std::to_string(i) + ".txt", std::string(99, static_cast<char>('a' + i)));
  DataConfig config;
  config.source = "text";
  config.path = folder_;
  config.sequence = 10;
  config.validation_fraction = 0.2;
  const TextData data = LoadTextData(config);
  EXPECT_EQ(data.documents, 10);
  EXPECT_EQ(StreamOf(data.train).size(), 800);
  EXPECT_EQ(StreamOf(data.validation).size(), 200);
  EXPECT_EQ(StreamOf(data.validation)[0], 'i');
  EXPECT_EQ(StreamOf(data.train)[99], 0);  // the end of a document
  config.validation_fraction = 0;
  EXPECT_EQ(LoadTextData(config).validation, nullptr);
  config.sequence = 10'000;
  config.keep_short_window = false;
  EXPECT_THROW(LoadTextData(config), UserError);
}

TEST_F(CorpusTest, ASingleDocumentIsCutAtALineEnd) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  Put("x.txt", text);
  DataConfig config;
  config.source = "text";
  config.path = folder_ + "/x.txt";
  config.sequence = 8;
  config.validation_fraction = 0.3;
  const TextData data = LoadTextData(config);
  const TokenStream& train = StreamOf(data.train);
  EXPECT_EQ(train[train.size() - 2], '\n');
  EXPECT_EQ(StreamOf(data.validation)[0], 'l');
  EXPECT_EQ(train.size() + StreamOf(data.validation).size(), static_cast<int64_t>(text.size()) + 2);
  config.validation_fraction = 0.001;  // less than one byte and the token after it
  Put("x.txt", "ab");
  EXPECT_THROW(LoadTextData(config), UserError);
}

TEST(PythonLibrary, IsRealText) {
  std::string folder;
  try {
    folder = FindPythonLibrary();
  } catch (const UserError& error) {
    GTEST_SKIP() << error.what();
  }
  const Corpus corpus = LoadPythonLibrary(2 << 20);
  EXPECT_GT(corpus.documents.size(), 10u);
  EXPECT_GT(corpus.bytes, 1 << 18);
  for (const Document& document : corpus.documents) {
    EXPECT_TRUE(document.name.ends_with(".py")) << document.name;
    EXPECT_EQ(document.name.find("-packages/"), std::string::npos) << document.name;
  }
}

TEST(DataConfig, DeclaresItsKeys) {
  DataConfig data;
  config::Config config;
  config.Add("data", [&](config::Section& s) { data.Declare(s); });
  config.LoadText("[data]\nsource = 'text'\npath = 'x'\nlast_batch = 'ragged'\nmax_bytes = '1 MiB'\n", "x.toml");
  config.Finish();
  EXPECT_EQ(data.last_batch, LastBatch::kRagged);
  EXPECT_EQ(data.max_bytes, 1 << 20);
  config.Set("data.source=python-stdlib");
  EXPECT_THROW(config.Finish(), UserError);  // data.path has no effect
}

TEST(DataConfig, RefusesAMaskOverEverything) {
  DataConfig data;
  config::Config config;
  config.Add("data", [&](config::Section& s) { data.Declare(s); });
  config.Set("data.masked_prefix=128");
  EXPECT_THROW(config.Finish(), UserError);
}

}  // namespace
}  // namespace penstock::data
