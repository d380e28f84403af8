// Case D11: malformed safetensors files give one error that names file, tensor and rule, before anything they describe
// is read or allocated; a file with metadata only is a valid empty one.
// https://github.com/safetensors/safetensors/issues/401 , https://github.com/ml-explore/mlx/issues/3363 ,
// https://github.com/safetensors/safetensors/issues/466 , https://github.com/1230young/bizgen/issues/15

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace penstock {
namespace {

std::string File(uint64_t length, const std::string& rest) {
  const std::string path = testing::TempDir() + "penstock-d11.safetensors";
  std::ofstream out(path, std::ios::binary);
  for (int i = 0; i < 8; ++i) out.put(static_cast<char>(length >> (8 * i)));
  out << rest;
  return path;
}

void ExpectError(const std::string& path, const std::vector<std::string>& parts) {
  try {
    const checkpoint::SafetensorsReader reader(path);
    FAIL() << "accepted, though it should say " << parts[0];
  } catch (const UserError& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find(path), std::string::npos) << message;
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

void ExpectError(const std::string& json, size_t data, const std::vector<std::string>& parts) {
  ExpectError(File(json.size(), json + std::string(data, 'x')), parts);
}

std::string Entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST(IssueD11, DuplicateKeys) {
  ExpectError("{" + Entry("w", "[1]", "[0,4]") + "," + Entry("w", "[1]", "[4,8]") + "}", 8, {"'w'", "twice"});
  ExpectError(R"({"__metadata__":{"a":"1","a":"2"}})", 0, {"'a'", "twice"});
  ExpectError(R"({"__metadata__":{},"__metadata__":{}})", 0, {"'__metadata__'", "twice"});
  ExpectError(R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4,
              {"'w'", "'dtype'", "twice"});
  ExpectError(
      R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0077":{"dtype":"U8","shape":[0],"data_offsets":[4,4]}})",
      4, {"'w'", "twice"});
}

TEST(IssueD11, ShapeAgainstBytes) {
  ExpectError("{" + Entry("w", "[1000,1000]", "[0,4]") + "}", 4, {"'w'", "needs 4000000 bytes", "hold 4"});
  ExpectError("{" + Entry("w", "[4611686018427387904,4]", "[0,0]") + "}", 0, {"'w'", "2^63"});
  ExpectError("{" + Entry("w", "[4611686018427387904,4,0]", "[0,0]") + "}", 0, {"'w'", "2^63"});
  ExpectError("{" + Entry("w", "[18446744073709551615]", "[0,4]") + "}", 4, {"'w'", "63-bit"});
  ExpectError("{" + Entry("w", "[-1]", "[0,4]") + "}", 4, {"'w'", "negative"});
  ExpectError("{" + Entry("w", "[1.0]", "[0,4]") + "}", 4, {"'w'", "1.0"});
}

TEST(IssueD11, Offsets) {
  ExpectError("{" + Entry("w", "[1]", "[4,0]") + "}", 4, {"'w'", "reversed"});
  ExpectError("{" + Entry("a", "[2]", "[0,8]") + "," + Entry("b", "[2]", "[4,12]") + "}", 12, {"'b'", "overlap"});
  ExpectError("{" + Entry("a", "[1]", "[0,4]") + "," + Entry("b", "[1]", "[8,12]") + "}", 12, {"'b'", "no tensor"});
  ExpectError("{" + Entry("a", "[1]", "[4,8]") + "}", 8, {"'a'", "no tensor"});
  ExpectError("{" + Entry("w", "[2]", "[0,8]") + "}", 4, {"'w'", "beyond the end"});
  ExpectError("{" + Entry("w", "[1]", "[18446744073709551612,18446744073709551615]") + "}", 4,
              {"'w'", "beyond the end"});
  ExpectError("{" + Entry("w", "[1]", "[0,4]") + "}", 9, {"last 5 bytes"});
  ExpectError("{" + Entry("w", "[1]", "[0,4,8]") + "}", 8, {"'w'", "3 entries"});
}

TEST(IssueD11, HeaderLength) {
  ExpectError(File(uint64_t{1} << 63, "{}"), {"9223372036854775808"});
  ExpectError(File(UINT64_MAX, "{}"), {"18446744073709551615"});
  ExpectError(File(99'999'999, "{}"), {"cut"});
  ExpectError(File(3, "{}"), {"cut"});
  ExpectError(File(0, ""), {"not JSON"});
  const std::string path = testing::TempDir() + "penstock-d11-short.safetensors";
  std::ofstream(path, std::ios::binary) << "abc";
  ExpectError(path, {"3 bytes"});
}

TEST(IssueD11, MetadataOnly) {
  const std::string json = R"({"__metadata__":{"format":"pt"}})";
  const checkpoint::SafetensorsReader reader(File(json.size(), json));
  EXPECT_TRUE(reader.header().entries.empty());
  EXPECT_EQ(reader.header().metadata.at("format"), "pt");
  EXPECT_TRUE(checkpoint::SafetensorsReader(File(2, "{}")).header().entries.empty());
}

TEST(IssueD11, NotAnObject) {
  for (const std::string json : {"[1]", "\"text\"", "7", "null", "true", "-1", "1.5"})
    ExpectError(json, 0, {"must be an object"});
  ExpectError("{\"w\":7}", 0, {"'w'", "must be an object"});
  ExpectError("{\"w\":{\"dtype\":\"F32\"}}", 0, {"'w'", "'shape' is missing"});
  ExpectError("{\"w\":{\"dtype\":7}}", 0, {"'w'", "dtype", "must be a text"});
  ExpectError("{\"w\":{\"dtype\":\"C64\"}}", 0, {"'w'", "C64", "not supported"});
  ExpectError("{\"w\":{\"color\":\"red\"}}", 0, {"'w'", "color", "known"});
  ExpectError("{\"__metadata__\":{\"a\":1}}", 0, {"'a'", "must be a text"});
  ExpectError("{\"w\"", 0, {"not JSON"});
  ExpectError("{} {}", 0, {"not JSON"});
  ExpectError(std::string("{\"\xff\":{}}"), 0, {"not JSON"});
}

}  // namespace
}  // namespace penstock
