#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "data/images_fixture.h"
#include "reference.h"

namespace penstock::data {
namespace {

// A line of 64 pixels `pixel` and the label.
std::string Line(int pixel, int label) {
  std::string line;
  for (int i = 0; i < 64; ++i) line += std::to_string(pixel) + ",";
  return line + std::to_string(label);
}

using ImagesDigits = ImageFiles;

TEST_F(ImagesDigits, ReadsPlainAndCompressed) {
  const std::string text = Line(0, 9) + "\n" + Line(16, 0) + "\r\n" + Line(7, 3);
  Write("digits.csv", text);
  Write("digits.csv.gz", Gzip(text));
  for (const char* name : {"digits.csv", "digits.csv.gz"}) {
    const ImageData data = LoadImages(At(name));
    EXPECT_EQ(data.kind, "digits");
    const ImageDataset& images = *data.parts.at(0).images;
    EXPECT_EQ(images.size(), 3);
    EXPECT_EQ(images.shape(), (ImageShape{1, 8, 8}));
    EXPECT_EQ(images.max_value(), 16);
    EXPECT_EQ(images.classes().size(), 10u);
    EXPECT_EQ(images.Label(0), 9);
    EXPECT_EQ(Pixels(images, 1), std::string(64, '\x10'));
    EXPECT_EQ(Pixels(images, 2), std::string(64, '\x7'));
  }
}

TEST_F(ImagesDigits, RefusalsNameLineAndRule) {
  const std::string good = Line(1, 1) + "\n", path = At("digits.csv");
  const auto refused = [&](const std::string& text) { return Refusal(Write("digits.csv", text)); };
  EXPECT_EQ(refused(""), "'" + path + "' is empty");
  EXPECT_EQ(refused(good + Line(17, 1)), "'" + path + "', line 2: pixel 1 is 17; they go from 0 to 16");
  EXPECT_EQ(refused(good + Line(1, 10)), "'" + path + "', line 2: the label is 10; they go from 0 to 9");
  EXPECT_EQ(refused(good + "1,2\n"), "'" + path + "', line 2 has 2 values; 64 pixels and a label are 65");
  EXPECT_EQ(refused(good + "\n" + good), "'" + path + "', line 2: value 1 is not a number from 0 to 16");
  EXPECT_EQ(refused("1,-2\n"), "'" + path + "', line 1: value 2 is not a number from 0 to 16");
  EXPECT_EQ(refused("1,2.5\n"), "'" + path + "', line 1: value 2 is not a number from 0 to 16");
  EXPECT_EQ(refused(std::string(17 << 20, '1')),
            "'" + path + "' has more than 16777216 bytes of text; the digits have 264712");
}

TEST_F(ImagesDigits, Mutations) {
  const std::string plain = Line(3, 1) + "\n" + Line(12, 8) + "\n", packed = Gzip(plain);
  int refused = 0;
  for (uint32_t n = 0; n < 300; ++n) {
    refused += Refusal(Write("digits.csv", Mutate(plain, n))) != "accepted";
    refused += Refusal(Write("digits.csv.gz", Mutate(packed, n))) != "accepted";
  }
  EXPECT_GT(refused, 400);
}

// Where no Python has it, the message says how to get it.
TEST_F(ImagesDigits, MissingFileSaysWhereFrom) {
  const std::map<std::string, std::string> wanted = {
      {"PENSTOCK_CACHE", folder_}, {"HOME", folder_}, {"VIRTUAL_ENV", folder_}, {"PATH", folder_}};
  std::map<std::string, std::optional<std::string>> before;
  for (const auto& [name, value] : wanted) {
    const char* old = std::getenv(name.c_str());
    before[name] = old != nullptr ? std::optional<std::string>(old) : std::nullopt;
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::string found;
  std::string message;
  try {
    found = FindDigits();
  } catch (const UserError& error) {
    message = error.what();
  }
  Write("lib/python3.9/site-packages/sklearn/datasets/data/digits.csv.gz", Gzip(Line(2, 2) + "\n"));
  const ImageData own = LoadImages("digits");
  for (const auto& [name, value] : before) {
    if (value)
      ::setenv(name.c_str(), value->c_str(), 1);
    else
      ::unsetenv(name.c_str());
  }
  // A machine may have scikit-learn among the system's packages.
  if (found.empty()) {
    EXPECT_NE(message.find("`make reference` or `pip install scikit-learn` brings them"), std::string::npos) << message;
  } else {
    EXPECT_EQ(found.rfind("/usr/", 0), 0u) << found;
  }
  EXPECT_EQ(own.parts[0].images->size(), 1);
  EXPECT_EQ(own.path, At("lib/python3.9/site-packages/sklearn/datasets/data/digits.csv.gz"));
}

TEST_F(ImagesDigits, EqualScikitLearn) {
  PENSTOCK_NEEDS_REFERENCE();
  const std::string theirs = RunReference(R"(
import sklearn.datasets as d
digits = d.load_digits()
for pixels, label in zip(digits.data, digits.target):
    print(",".join(str(int(p)) for p in pixels) + "," + str(label))
x = digits.data / 16
print(f"{x.mean():.10f} {x.std():.10f}")
)");
  const ImageData data = LoadImages("digits");
  const ImageDataset& images = *data.parts[0].images;
  EXPECT_EQ(images.size(), 1797);
  std::string ours;
  for (int64_t i = 0; i < images.size(); ++i) {
    for (const uint8_t p : images.Get(i).pixels) ours += std::to_string(p) + ",";
    ours += std::to_string(images.Label(i)) + "\n";
  }
  const ImageStatistics statistics = Measure(images);
  ours += fmt::format("{:.10f} {:.10f}\n", statistics.mean[0], statistics.standard_deviation[0]);
  EXPECT_TRUE(ours == theirs) << "the digits differ from sklearn.datasets.load_digits()";
}

}  // namespace
}  // namespace penstock::data
