#include "data/images_fixture.h"

namespace penstock::data {
namespace {

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string IdxImages(uint32_t count, uint32_t height, uint32_t width, const std::string& pixels) {
  return BigEndian(0x803) + BigEndian(count) + BigEndian(height) + BigEndian(width) + pixels;
}
std::string IdxLabels(const std::string& labels) {
  return BigEndian(0x801) + BigEndian(static_cast<uint32_t>(labels.size())) + labels;
}

const std::string kPixels = RandomBytes(5 * 4 * 3, 1);
const std::string kLabels("\0\2\2\1\0", 5);

class ImagesIdx : public ImageFiles {
 protected:
  // Five pictures of 4 x 3 for training, two for the test.
  void WriteBoth() {
    Write("train-images-idx3-ubyte", IdxImages(5, 4, 3, kPixels));
    Write("train-labels-idx1-ubyte", IdxLabels(kLabels));
    Write("t10k-images-idx3-ubyte", IdxImages(2, 4, 3, kPixels.substr(12, 24)));
    Write("t10k-labels-idx1-ubyte", IdxLabels("\3\1"));
  }
};

TEST_F(ImagesIdx, ReadsBothParts) {
  WriteBoth();
  const ImageData data = LoadImages(folder_);
  EXPECT_EQ(data.kind, "mnist");
  ASSERT_EQ(data.parts.size(), 2u);
  EXPECT_EQ(data.parts[0].name, "train");
  EXPECT_EQ(data.parts[1].name, "test");
  const ImageDataset& train = *data.parts[0].images;
  EXPECT_EQ(train.size(), 5);
  EXPECT_EQ(train.shape(), (ImageShape{1, 4, 3}));
  EXPECT_EQ(train.max_value(), 255);
  // Of both parts: the label 3 is in the test only.
  EXPECT_EQ(train.classes(), (std::vector<std::string>{"0", "1", "2", "3"}));
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(Pixels(train, i), kPixels.substr(static_cast<size_t>(12 * i), 12));
    EXPECT_EQ(train.Label(i), kLabels[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(Pixels(*data.parts[1].images, 1), kPixels.substr(24, 12));
  EXPECT_EQ(data.parts[1].images->Label(0), 3);
}

TEST_F(ImagesIdx, CompressedFilesAreTheSame) {
  WriteBoth();
  const ImageData plain = LoadImages(folder_);
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"}) {
    // Two members, as `cat a.gz b.gz` makes them.
    const std::string bytes = Read(name);
    Write(std::string(name) + ".gz", Gzip(bytes.substr(0, 10)) + Gzip(bytes.substr(10)));
  }
  // Where both are, the plain ones are taken, once.
  EXPECT_EQ(LoadImages(folder_).parts.size(), 2u);
  std::filesystem::remove(At("train-images-idx3-ubyte"));
  std::filesystem::remove(At("train-labels-idx1-ubyte"));
  const ImageData mixed = LoadImages(folder_);
  ASSERT_EQ(mixed.parts.size(), 2u);
  EXPECT_EQ(mixed.parts[0].images->Fingerprint(), plain.parts[0].images->Fingerprint());
  const ImageData one = LoadImages(At("t10k-images-idx3-ubyte.gz"));
  ASSERT_EQ(one.parts.size(), 1u);
  EXPECT_EQ(one.parts[0].name, "test");
  EXPECT_EQ(Pixels(*one.parts[0].images, 0), kPixels.substr(12, 12));
}

TEST_F(ImagesIdx, FingerprintIsOfContents) {
  WriteBoth();
  const std::string before = LoadImages(folder_).parts[0].images->Fingerprint();
  std::string labels = kLabels;
  labels[4] = 1;
  Write("train-labels-idx1-ubyte", IdxLabels(labels));
  EXPECT_NE(LoadImages(folder_).parts[0].images->Fingerprint(), before);
  Write("train-labels-idx1-ubyte", IdxLabels(kLabels));
  EXPECT_EQ(LoadImages(folder_).parts[0].images->Fingerprint(), before);
  std::string pixels = kPixels;
  pixels[59] = static_cast<char>(pixels[59] ^ 1);
  Write("train-images-idx3-ubyte", IdxImages(5, 4, 3, pixels));
  EXPECT_NE(LoadImages(folder_).parts[0].images->Fingerprint(), before);
  // The same bytes as pictures of 3 x 4.
  Write("train-images-idx3-ubyte", IdxImages(5, 3, 4, kPixels));
  std::filesystem::remove(At("t10k-images-idx3-ubyte"));
  EXPECT_NE(LoadImages(folder_).parts[0].images->Fingerprint(), before);
}

TEST_F(ImagesIdx, RefusalsNameFileAndRule) {
  WriteBoth();
  const std::string images = At("train-images-idx3-ubyte"), labels = At("train-labels-idx1-ubyte");
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    const std::string good = Read(name);
    Write(name, bytes);
    const std::string message = Refusal(folder_);
    Write(name, good);
    return message;
  };
  EXPECT_EQ(refused("train-images-idx3-ubyte", IdxLabels(kLabels)),
            "'" + images + "' is no IDX file of pictures: it begins with 00000801, not 00000803");
  EXPECT_EQ(refused("train-images-idx3-ubyte", BigEndian(0x803) + BigEndian(5)),
            "'" + images + "' is no IDX file of pictures: it ends after 8 bytes, inside the header");
  EXPECT_EQ(refused("train-images-idx3-ubyte", IdxImages(5, 4, 3, kPixels.substr(1))),
            "'" + images + "' is cut off: its header promises 60 bytes, it has 59; get the file again");
  EXPECT_EQ(refused("train-images-idx3-ubyte", IdxImages(5, 4, 3, kPixels + "x")),
            "'" + images + "' goes on behind the 60 bytes that its header promises");
  EXPECT_EQ(refused("train-images-idx3-ubyte", IdxImages(5, 0, 3, "")),
            "'" + images + "': its header promises 5 pictures of 0 x 3; sides are 1 to 16384");
  EXPECT_EQ(refused("t10k-images-idx3-ubyte", IdxImages(2, 3, 4, kPixels.substr(0, 24))),
            "'" + At("t10k-images-idx3-ubyte") + "' has pictures of 3 x 4, the files before it have 4 x 3");
  EXPECT_EQ(refused("train-labels-idx1-ubyte", IdxLabels(kLabels.substr(1))),
            "'" + labels + "' has 4 labels, '" + images + "' has 5 pictures");
  EXPECT_EQ(refused("train-labels-idx1-ubyte", IdxLabels(kLabels) + "x"),
            "'" + labels + "' goes on behind the 5 bytes that its header promises");
  std::filesystem::remove(labels);
  EXPECT_EQ(Refusal(folder_), "'" + images + "' has no labels beside it: '" + labels + "' is not there (nor with .gz)");
  EXPECT_EQ(Refusal(Write("x/odd", IdxImages(1, 1, 1, "a"))),
            "'" + At("x/odd") +
                "' does not say where its labels are: an IDX file of pictures is called "
                "<name>-images-idx3-ubyte and has <name>-labels-idx1-ubyte beside it");
}

// What a header promises is not allocated before it is there: 3 GiB here, within the limit, from a file of 60 bytes.
TEST_F(ImagesIdx, AHeaderAloneCostsNoMemory) {
  const std::string lie = IdxImages(3 << 10, 1024, 1024, kPixels);
  Write("train-labels-idx1-ubyte", BigEndian(0x801) + BigEndian(3 << 10) + kLabels);
  Write("train-images-idx3-ubyte", lie);
  const std::string message = "' is cut off: its header promises 3221225472 bytes, it has 60; get the file again";
  EXPECT_EQ(Refusal(folder_), "'" + At("train-images-idx3-ubyte") + message);
  std::filesystem::remove(At("train-images-idx3-ubyte"));
  Write("train-images-idx3-ubyte.gz", Gzip(lie));
  EXPECT_EQ(Refusal(folder_), "'" + At("train-images-idx3-ubyte.gz") + message);
}

TEST_F(ImagesIdx, LimitOfMemory) {
  WriteBoth();
  ImageOptions options;
  options.max_bytes = (5 + 2) * (12 + 4);
  EXPECT_EQ(Refusal(folder_, options), "accepted");
  --options.max_bytes;
  EXPECT_EQ(Refusal(folder_, options),
            "'" + At("t10k-images-idx3-ubyte") +
                "': with it the pictures take 112 B, more than the 111 B that may be kept in memory; raise that limit");
}

TEST_F(ImagesIdx, DamagedGzip) {
  WriteBoth();
  std::filesystem::remove(At("train-images-idx3-ubyte"));
  const std::string good = Gzip(IdxImages(5, 4, 3, kPixels));
  const std::string path = At("train-images-idx3-ubyte.gz");
  Write("train-images-idx3-ubyte.gz", good.substr(0, good.size() - 1));
  EXPECT_EQ(Refusal(folder_), "'" + path + "' is cut off: the compressed data does not end; get the file again");
  Write("train-images-idx3-ubyte.gz", good + "more");
  EXPECT_EQ(Refusal(folder_), "'" + path + "' has bytes behind the end of its gzip data");
  std::string wrong_sum = good;
  wrong_sum[good.size() - 6] = static_cast<char>(wrong_sum[good.size() - 6] ^ 1);
  Write("train-images-idx3-ubyte.gz", wrong_sum);
  EXPECT_EQ(Refusal(folder_),
            "'" + path + "' is damaged: its gzip data does not decompress (incorrect data check); get the file again");
}

// Any change leads to other samples or to a UserError; never to another exception, and plain IDX has no redundancy.
TEST_F(ImagesIdx, Mutations) {
  WriteBoth();
  int refused = 0;
  for (const char* name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "train-images-idx3-ubyte.gz"}) {
    const bool gzip = std::string(name).back() == 'z';
    const std::string plain = IdxImages(5, 4, 3, kPixels);
    if (gzip) std::filesystem::remove(At("train-images-idx3-ubyte"));
    const std::string good = gzip ? Gzip(plain) : Read(name);
    for (uint32_t n = 0; n < 400; ++n) {
      Write(name, Mutate(good, n));
      refused += Refusal(folder_) != "accepted";
    }
    Write(name, good);
    EXPECT_EQ(Refusal(folder_), "accepted");
  }
  EXPECT_GT(refused, 900);
}

}  // namespace
}  // namespace penstock::data
