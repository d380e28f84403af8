#include "data/token_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/faulty_file_system.h"

namespace penstock::data {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        testing::TempDir() + "/penstock_token_file_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = folder_ + "/a.tokens";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
};

TokenFileInfo Info(int32_t vocabulary) {
  return {.tokenizer = "test", .fingerprint = "0123", .vocabulary = vocabulary, .end_of_document = vocabulary - 1};
}

// What is read has to be within the file whatever it says: runs under the address sanitizer too.
void ReadAll(const TokenFile& file) {
  int64_t sum = 0;
  for (int64_t i = 0; i < file.tokens(); ++i) sum += file[i];
  for (int64_t i = 0; i < file.documents(); ++i)
    for (int64_t t = file.Document(i).begin; t < file.Document(i).end; ++t) sum += file[t];
  EXPECT_GE(sum, 0);
}

TEST_F(TokenFileTest, RoundTripInEveryWidth) {
  for (const int32_t vocabulary : {2, 256, 257, 65536, 65537, 1 << 24, INT32_MAX}) {
    const std::vector<std::vector<int32_t>> documents = {{0, 1, vocabulary - 2}, {}, {vocabulary / 2}};
    WriteTokenFile(path_, Info(vocabulary), documents, true);
    const TokenFile file(path_);
    EXPECT_EQ(file.width(), vocabulary <= 256 ? 1 : vocabulary <= 65536 ? 2 : 4);
    EXPECT_EQ(file.info().tokenizer, "test");
    EXPECT_EQ(file.info().fingerprint, "0123");
    EXPECT_EQ(file.info().end_of_document, vocabulary - 1);
    ASSERT_EQ(file.documents(), 3);
    ASSERT_EQ(file.tokens(), 7);
    for (size_t d = 0; d < documents.size(); ++d) {
      std::vector<int32_t> ids;
      for (int64_t t = file.Document(d).begin; t < file.Document(d).end; ++t) ids.push_back(file[t]);
      std::vector<int32_t> expected = documents[d];
      expected.push_back(vocabulary - 1);
      EXPECT_EQ(ids, expected);
    }
    if (vocabulary > 1 << 24) continue;
    std::vector<int64_t> counts;
    file.Verify({}, &counts);
    EXPECT_GE(counts[static_cast<size_t>(vocabulary - 1)], 3);
  }
}

// The bytes of docs/formats/token_file.md.
TEST_F(TokenFileTest, LayoutOfASmallFile) {
  WriteTokenFile(path_, {.tokenizer = "abc", .fingerprint = "de", .vocabulary = 300, .end_of_document = 299},
                 {{1, 258}});
  const std::string bytes = ReadFile(path_);
  ASSERT_EQ(bytes.size(), 128u + 8 + 16 + 32 + 8);
  EXPECT_EQ(bytes.substr(0, 8), "PNSTKTOK");
  EXPECT_EQ(bytes[8], 1);
  EXPECT_EQ(bytes[12], 2);
  EXPECT_EQ(static_cast<unsigned char>(bytes[16]), 128);
  EXPECT_EQ(bytes[24], 3);
  EXPECT_EQ(bytes[32], 1);
  EXPECT_EQ(bytes.substr(56, 5), "abcde");
  EXPECT_EQ(bytes.substr(128, 8), std::string("\1\0\2\1\x2b\1\0\0", 8));
  EXPECT_EQ(bytes.substr(136, 16), std::string("\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(bytes.substr(bytes.size() - 8), "PNSTKEND");
}

TEST_F(TokenFileTest, NoDocumentAtAll) {
  WriteTokenFile(path_, Info(256), {});
  const TokenFile file(path_);
  EXPECT_EQ(file.tokens(), 0);
  EXPECT_EQ(file.documents(), 0);
  file.Verify();
}

TEST_F(TokenFileTest, IsNotOverwrittenUnasked) {
  WriteTokenFile(path_, Info(256), {{1}});
  EXPECT_THROW(WriteTokenFile(path_, Info(256), {{2}}), UserError);
  WriteTokenFile(path_, Info(256), {{2}}, true);
  EXPECT_EQ(TokenFile(path_)[0], 2);
}

TEST_F(TokenFileTest, OtherFilesAreRefusedByName) {
  const auto fault = [&](const std::string& bytes) -> std::string {
    std::ofstream(path_, std::ios::binary) << bytes;
    try {
      const TokenFile file(path_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "opened";
  };
  EXPECT_NE(fault("").find("does not start with 'PNSTKTOK'"), std::string::npos);
  EXPECT_NE(fault(std::string(1000, 'x')).find("a.tokens"), std::string::npos);
  EXPECT_THROW(TokenFile(folder_ + "/none"), UserError);
  EXPECT_THROW(TokenFile{folder_}, UserError);
  // A header of another version, and one that promises more than there is, both with a hash that is right.
  std::filesystem::remove(path_);
  WriteTokenFile(path_, Info(256), {{1, 2, 3}});
  const std::string good = ReadFile(path_);
  const auto with = [&](size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    const Hash128 hash = Hash(bytes.data(), 128 - 16);
    for (size_t b = 0; b < 8; ++b) bytes[112 + b] = static_cast<char>(hash.high >> (8 * b));
    for (size_t b = 0; b < 8; ++b) bytes[120 + b] = static_cast<char>(hash.low >> (8 * b));
    return bytes;
  };
  ASSERT_EQ(with(8, 1), good);
  EXPECT_NE(fault(with(8, 2)).find("version 2"), std::string::npos);
  EXPECT_NE(fault(with(31, 127)).find("do not fit"), std::string::npos);
  EXPECT_NE(fault(with(24, 20)).find("bytes"), std::string::npos);
  EXPECT_NE(fault(with(24, 5)).find("does not cover"), std::string::npos);
  EXPECT_NE(fault(with(12, 4)).find("per token"), std::string::npos);
  EXPECT_NE(fault(with(44, 0) + "x").find("bytes"), std::string::npos);
}

// Each damage is refused when the file is opened or when it is verified; and a file that opened is read within its
// bounds all the same.
TEST_F(TokenFileTest, AThousandDamages) {
  std::mt19937_64 rng(7);
  std::vector<std::vector<int32_t>> documents;
  for (int d = 0; d < 20; ++d) {
    std::vector<int32_t> ids(rng() % 30);
    for (int32_t& id : ids) id = static_cast<int32_t>(rng() % 1000);
    documents.push_back(ids);
  }
  WriteTokenFile(path_, Info(1001), documents);
  const std::string good = ReadFile(path_);
  int refused_open = 0, refused_verify = 0;
  for (int n = 0; n < 1000; ++n) {
    std::string bytes = good;
    while (bytes == good) {
      // Half of the damages are in what steers: the header and the table.
      const size_t where = rng() % 2 == 0 ? rng() % 128 : rng() % bytes.size();
      const size_t length = 1 + rng() % std::min<size_t>(bytes.size() - where, 40);
      switch (rng() % 6) {
        case 0:
          bytes[where] = static_cast<char>(bytes[where] ^ (1 << (rng() % 8)));
          break;
        case 1:
          for (size_t b = 0; b < length; ++b) bytes[where + b] = static_cast<char>(rng());
          break;
        case 2:
          bytes.resize(where);
          break;
        case 3:
          bytes.erase(where, length);
          break;
        case 4:
          bytes.insert(where, std::string(length, static_cast<char>(rng())));
          break;
        default:
          bytes.replace(where, length, std::string(length, '\xff'));
      }
    }
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    bool opened = false, verified = false;
    try {
      const TokenFile file(path_);
      opened = true;
      try {
        ReadAll(file);
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("a.tokens"), std::string::npos);
      }
      file.Verify();
      verified = true;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("a.tokens"), std::string::npos);
      ++(opened ? refused_verify : refused_open);
    }
    EXPECT_FALSE(verified) << n;
  }
  EXPECT_GT(refused_open, 300);
  EXPECT_GT(refused_verify, 50);
  EXPECT_EQ(refused_open + refused_verify, 1000);
}

// Whatever operation fails: an error, and either the old file or none.
TEST_F(TokenFileTest, EveryFailedWriteLeavesTheOldFile) {
  const std::vector<std::vector<int32_t>> documents(50, std::vector<int32_t>(3000, 5));
  WriteTokenFile(path_, Info(70000), {{1}});
  const std::string old = ReadFile(path_);
  FaultyFileSystem faulty;
  faulty.set_fault({});
  WriteTokenFile(folder_ + "/b.tokens", Info(70000), documents, false, faulty);
  const int64_t operations = faulty.operations();
  EXPECT_GE(operations, 5);
  for (const bool crash : {false, true}) {
    for (int64_t k = 1; k <= operations; ++k) {
      faulty.set_fault({.operation = k, .written = 0.5, .crash = crash});
      EXPECT_THROW(WriteTokenFile(path_, Info(70000), documents, true, faulty), WorldError) << k;
      if (ReadFile(path_) == old) continue;
      EXPECT_EQ(k, operations);  // only the last one, which makes the rename durable
      EXPECT_EQ(TokenFile(path_).documents(), 50);
      WriteTokenFile(path_, Info(70000), {{1}}, true);
    }
  }
}

}  // namespace
}  // namespace penstock::data
