#include "checkpoint/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "checkpoint/temporary_directory.h"
#include "checkpoint/tensor_hash.h"

namespace penstock::checkpoint {
namespace {

NamedTensors OddShapes() {
  NamedTensors tensors;
  int i = 0;
  for (const at::ScalarType dtype :
       {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf, at::kLong, at::kInt, at::kByte}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {1}, {3}, {6}, {7}, {0}, {2, 0, 5}, {3, 5}, {1, 2, 1, 3}}) {
      int64_t n = 1;
      for (const int64_t d : shape) n *= d;
      tensors["p" + std::to_string(i++) + " \"quoted\" \u00e9"] = at::arange(n, at::kDouble).to(dtype).reshape(shape);
    }
  }
  tensors["strided"] = at::arange(6, at::kFloat).reshape({2, 3}).t();
  return tensors;
}

TEST(Safetensors, RoundTripOfAllTypesAndOddShapes) {
  const TemporaryDirectory directory;
  const NamedTensors tensors = OddShapes();
  const auto hashes = WriteSafetensors(directory / "x", FromMemory(tensors), {{"k", "v \n \u00e9"}});
  const SafetensorsReader reader(directory / "x");
  EXPECT_EQ(reader.header().entries.size(), tensors.size());
  EXPECT_EQ(reader.header().metadata, (std::map<std::string, std::string>{{"k", "v \n \u00e9"}}));
  EXPECT_EQ(reader.header().data_start % 8, 0u);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor read = reader.Read(name);
    EXPECT_EQ(read.scalar_type(), tensor.scalar_type());
    EXPECT_TRUE(read.equal(tensor)) << name;
    EXPECT_EQ(hashes.at(name), HashTensor(name, read));
  }
}

TEST(Safetensors, BytesAreTheFormat) {
  const TemporaryDirectory directory;
  WriteSafetensors(directory / "x", FromMemory({{"a", at::full({2}, 1.0f)}}));
  const std::string json = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padded = json + std::string((8 - json.size() % 8) % 8, ' ');
  std::string expected = std::string(1, static_cast<char>(padded.size())) + std::string(7, '\0') + padded;
  for (int i = 0; i < 2; ++i) expected += std::string("\x00\x00\x80\x3f", 4);
  EXPECT_EQ(ReadFile(directory / "x"), expected);
}

TEST(Safetensors, ShardsAreReadAlone) {
  const TemporaryDirectory directory;
  WriteSafetensors(directory / "x",
                   FromMemory({{"a", at::full({3}, 9.0)}, {"w", at::arange(10, at::kInt).reshape({2, 5})}}));
  const SafetensorsReader reader(directory / "x");
  EXPECT_TRUE(reader.ReadElements("w", 3, 4).equal(at::arange(3, 7, at::kInt)));
  EXPECT_EQ(reader.ReadElements("w", 10, 0).numel(), 0);
  EXPECT_THROW(reader.ReadElements("w", 8, 3), InternalError);
}

TEST(Safetensors, UnknownTensorNamesTheNearest) {
  const TemporaryDirectory directory;
  WriteSafetensors(directory / "x", FromMemory({{"layers.0.weight", at::full({1}, 1.0f)}}));
  const SafetensorsReader reader(directory / "x");
  EXPECT_FALSE(reader.Has("layers.0.wieght"));
  try {
    reader.Read("layers.0.wieght");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'layers.0.weight'"), std::string::npos) << e.what();
  }
}

TEST(Safetensors, SourceMustKeepItsWord) {
  const TemporaryDirectory directory;
  TensorSource source{.specs = {{"a", at::kFloat, {2}}}, .fetch = [](int) { return at::full({3}, 1.0f); }};
  EXPECT_THROW(WriteSafetensors(directory / "x", source), InternalError);
  source.specs.push_back(source.specs[0]);
  EXPECT_THROW(WriteSafetensors(directory / "y", source), InternalError);
  EXPECT_THROW(FormatSafetensorsHeader({{"c", at::kComplexFloat, {1}}}, {}), UserError);
  EXPECT_THROW(FormatSafetensorsHeader({{"\xff", at::kFloat, {1}}}, {}), UserError);
}

TEST(Safetensors, MissingFile) { EXPECT_THROW(SafetensorsReader("/nowhere/x.safetensors"), UserError); }

}  // namespace
}  // namespace penstock::checkpoint
