// The commands `tokenizer train` and `tokenizer inspect`, and that the package `transformers` reads what they write.
#include "session/train_tokenizer_command.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "reference.h"
#include "session/inspect_tokenizer_command.h"
#include "tokenizer/tokenizer.h"

namespace penstock::session {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TokenizerCommands : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/penstock_tokenizer_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream text(folder_ + "/text.txt");
    for (int i = 0; i < 300; ++i)
      text << "The quick brown fox number " << i << " jumps; na\xC3\xAFve, the lazy dog's\n";
    command_.train.text.inputs = {folder_ + "/text.txt"};
    command_.out = folder_ + "/made";
    command_.vocabulary = 310;
    command_.threads = 2;
  }
  std::string Train() {
    std::ostringstream out, log;
    EXPECT_EQ(RunTrainTokenizer(command_, out, log), 0);
    return out.str();
  }
  Json Inspect(const std::string& text) {
    std::ostringstream out;
    EXPECT_EQ(RunInspectTokenizer({.tokenizer = command_.out, .text = text, .json = true}, out), 0);
    return Json::parse(out.str());
  }
  void Refused(const std::string& what) {
    std::ostringstream out, log;
    try {
      RunTrainTokenizer(command_, out, log);
      ADD_FAILURE() << what;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
    EXPECT_EQ(out.str(), "");
  }
  std::string folder_;
  TrainTokenizerCommand command_;
};

TEST_F(TokenizerCommands, TrainThenInspect) {
  command_.train.bpe.special_tokens = {"<doc>", "<user>"};
  command_.train.bpe.pattern = "llama3";
  command_.train.bpe.normalizer = "nfc";
  const std::string said = Train();
  EXPECT_NE(said.find("vocabulary 310: 2 special, 256 bytes, 52 merges"), std::string::npos) << said;
  EXPECT_NE(said.find("penstock tokenize " + folder_ + "/text.txt --tokenizer " + command_.out), std::string::npos)
      << said;
  const std::string text = "the lazy e\xCC\x81 fox <user>\n";
  const Json found = Inspect(text);
  EXPECT_EQ(found.at("vocabulary"), 310);
  EXPECT_EQ(found.at("end_of_document"), 0) << "the first special token, though no usual one";
  EXPECT_EQ(found.at("special_tokens").dump(), R"([{"id":0,"text":"<doc>"},{"id":1,"text":"<user>"}])");
  EXPECT_EQ(found.at("normalizer"), "NFC");
  EXPECT_EQ(found.at("pieces"), "Split(behavior Isolated, pattern of llama3), then ByteLevel");
  EXPECT_EQ(found.at("lossless"), false);
  EXPECT_EQ(found.at("text").at("same_text"), false);
  EXPECT_EQ(found.at("text").at("decoded"), "the lazy \xC3\xA9 fox <user>\n");
  EXPECT_EQ(found.at("text").at("ids").size(), found.at("text").at("pieces").size());
  const Json with_specials = found.at("text").at("ids_with_special_tokens");
  EXPECT_EQ(std::count(with_specials.begin(), with_specials.end(), 1), 1);
  EXPECT_EQ(Inspect("the fox").at("text").at("same_text"), true);
}

TEST_F(TokenizerCommands, InspectShowsBytesAndWhiteSpace) {
  std::ostringstream out;
  RunInspectTokenizer({.tokenizer = "bytes", .text = "a\n\xC3", .json = false}, out);
  for (const char* line : {"lossless          yes", "      97  'a'\n", "      10  '\\n'\n", "     195  '\\xc3'\n",
                           "3 bytes, 3 tokens\n", "decoding gives the text back\n"})
    EXPECT_NE(out.str().find(line), std::string::npos) << line << out.str();
}

TEST_F(TokenizerCommands, NothingIsOverwrittenUnasked) {
  Train();
  const std::string first = ReadFile(command_.out + "/tokenizer.json");
  command_.vocabulary = 300;
  Refused("exists already and is not overwritten");
  EXPECT_EQ(ReadFile(command_.out + "/tokenizer.json"), first);
  command_.overwrite = true;
  Train();
  EXPECT_NE(ReadFile(command_.out + "/tokenizer.json"), first);
}

TEST_F(TokenizerCommands, LessThanAskedForIsSaid) {
  command_.vocabulary = 100000;
  const std::string said = Train();
  EXPECT_NE(said.find("that is less than the 100000 asked for"), std::string::npos) << said;
}

TEST_F(TokenizerCommands, RefusedOptionsWriteNothing) {
  command_.vocabulary = 256;
  Refused("at least 257");
  command_.vocabulary = 0;
  Refused("--vocabulary 0");
  command_.vocabulary = 300;
  command_.min_frequency = 0;
  Refused("--min-frequency 0");
  command_.min_frequency = 2;
  command_.threads = -1;
  Refused("--threads -1");
  command_.threads = 1;
  EXPECT_FALSE(fs::exists(command_.out));
  command_.out.clear();
  Refused("--out is missing");
}

// What is written is what others read: the same ids, end of text and special tokens.
TEST_F(TokenizerCommands, TransformersReadsTheFolder) {
  PENSTOCK_NEEDS_REFERENCE();
  for (const char* pattern : {"gpt2", "llama3", "qwen2"}) {
    command_.overwrite = true;
    command_.train.bpe.pattern = pattern;
    command_.train.bpe.special_tokens = {"<doc>", "<user>"};
    Train();
    const std::string out = RunReference(R"(
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
text = "The quick fox's 12345  jumps\n\n  na\u00efve \u6f22\u5b57<user>"
ids = tokenizer(text)["input_ids"]
print(json.dumps({"ids": ids, "text": tokenizer.decode(ids), "eos": tokenizer.eos_token_id, "size": len(tokenizer)}))
)",
                                         "'" + command_.out + "'");
    ASSERT_FALSE(HasFailure());
    const Json said = Json::parse(out);
    const auto tokenizer = tokenizer::LoadTokenizer(command_.out);
    const std::string text = "The quick fox's 12345  jumps\n\n  na\xC3\xAFve \xE6\xBC\xA2\xE5\xAD\x97<user>";
    EXPECT_EQ(said.at("ids").get<std::vector<int32_t>>(), tokenizer->EncodeWithSpecials(text)) << pattern;
    EXPECT_EQ(said.at("text"), text);
    EXPECT_EQ(said.at("eos"), tokenizer->end_of_document());
    EXPECT_EQ(said.at("size"), tokenizer->vocabulary());
  }
}

}  // namespace
}  // namespace penstock::session
