#include <sys/stat.h>

#include "data/images_fixture.h"

namespace penstock::data {
namespace {

constexpr size_t kPixels = 3072;

std::string Record(const std::string& labels, uint64_t seed) { return labels + RandomBytes(kPixels, seed); }

class ImagesCifar : public ImageFiles {
 protected:
  void WriteTen() {
    for (int b = 1; b <= 5; ++b)
      Write("data_batch_" + std::to_string(b) + ".bin",
            Record(std::string(1, static_cast<char>(b)), static_cast<uint64_t>(b)) + Record(std::string(1, '\0'), 10));
    Write("test_batch.bin", Record("\x9", 20));
  }
  void WriteHundred() {
    Write("train.bin", Record("\x13\x63", 1) + Record(std::string("\0\1", 2), 2));
    Write("test.bin", Record("\x7\x32", 3));
  }
};

TEST_F(ImagesCifar, Ten) {
  WriteTen();
  const ImageData data = LoadImages(folder_);
  EXPECT_EQ(data.kind, "cifar10");
  ASSERT_EQ(data.parts.size(), 2u);
  const ImageDataset& train = *data.parts[0].images;
  EXPECT_EQ(train.size(), 10);
  EXPECT_EQ(train.shape(), (ImageShape{3, 32, 32}));
  EXPECT_EQ(train.classes().size(), 10u);
  EXPECT_EQ(train.classes()[9], "truck");
  for (int64_t i = 0; i < 10; ++i) {  // the order of the batches, red before green before blue as in the file
    EXPECT_EQ(train.Label(i), i % 2 == 0 ? i / 2 + 1 : 0);
    EXPECT_EQ(Pixels(train, i), RandomBytes(kPixels, i % 2 == 0 ? static_cast<uint64_t>(i / 2 + 1) : 10));
  }
  EXPECT_EQ(data.parts[1].name, "test");
  EXPECT_EQ(data.parts[1].images->Label(0), 9);
}

TEST_F(ImagesCifar, NamesFromTheFile) {
  WriteTen();
  Write("batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  EXPECT_EQ(LoadImages(folder_).parts[0].images->classes()[9], "j");
  Write("batches.meta.txt", "a\nb\n");
  EXPECT_EQ(Refusal(folder_), "'" + At("batches.meta.txt") + "' has 2 names, one a line; there are 10 classes");
}

TEST_F(ImagesCifar, Hundred) {
  WriteHundred();
  const ImageData fine = LoadImages(folder_);
  EXPECT_EQ(fine.kind, "cifar100");
  EXPECT_EQ(fine.parts[0].images->classes().size(), 100u);
  EXPECT_EQ(fine.parts[0].images->Label(0), 99);
  EXPECT_EQ(fine.parts[0].images->Label(1), 1);
  ImageOptions options;
  options.labels = "coarse";
  const ImageData coarse = LoadImages(folder_, options);
  EXPECT_EQ(coarse.parts[0].images->classes().size(), 20u);
  EXPECT_EQ(coarse.parts[0].images->Label(0), 19);
  EXPECT_EQ(coarse.parts[1].images->Label(0), 7);
  EXPECT_EQ(Pixels(*fine.parts[0].images, 1), RandomBytes(kPixels, 2));
  EXPECT_EQ(Pixels(*coarse.parts[0].images, 1), RandomBytes(kPixels, 2));
  options.labels = "medium";
  EXPECT_EQ(Refusal(folder_, options), "the labels of CIFAR-100 are 'fine' or 'coarse', not 'medium'");
}

TEST_F(ImagesCifar, OneFile) {
  WriteTen();
  const ImageData one = LoadImages(At("data_batch_3.bin"));
  EXPECT_EQ(one.kind, "cifar10");
  EXPECT_EQ(one.parts[0].name, "all");
  EXPECT_EQ(one.parts[0].images->size(), 2);
  WriteHundred();
  EXPECT_EQ(LoadImages(At("train.bin")).kind, "cifar100");
}

TEST_F(ImagesCifar, RefusalsNameFileAndRule) {
  WriteTen();
  const std::string path = At("data_batch_2.bin"), good = Read("data_batch_2.bin");
  Write("data_batch_2.bin", good.substr(0, good.size() - 1));
  EXPECT_EQ(Refusal(folder_),
            "'" + path + "' is cut off, or no cifar10 batch: its last record, 1, has 3072 bytes of 3073");
  std::string label = good;
  label[3073] = 10;
  Write("data_batch_2.bin", label);
  EXPECT_EQ(Refusal(folder_), "'" + path + "': record 1 has the label 10; cifar10 has 0 to 9");
  Write("data_batch_2.bin", "");
  EXPECT_EQ(Refusal(folder_), "'" + path + "' is empty; cifar10 batches have records of 3073 bytes");
  std::filesystem::remove(path);
  EXPECT_EQ(Refusal(folder_),
            "'" + path + "' is not there; the train part of cifar10 is 5 files (or name a single batch file)");
  ImageOptions hundred;
  hundred.kind = "cifar100";
  EXPECT_EQ(Refusal(Write("y/train.bin", Record("\x14\x1", 1)), hundred),
            "'" + At("y/train.bin") + "': record 0 has the coarse label 20; cifar100 has 0 to 19");
  EXPECT_EQ(Refusal(Write("y/train.bin", Record("\x13\x64", 1)), hundred),
            "'" + At("y/train.bin") + "': record 0 has the fine label 100; cifar100 has 0 to 99");
  ImageOptions resized;
  resized.height = resized.width = 16;
  Write("data_batch_2.bin", good);
  EXPECT_EQ(Refusal(folder_, resized),
            "'" + folder_ + "' is cifar10: channels and size can be chosen for a folder of PNG files only");
}

TEST_F(ImagesCifar, Mutations) {
  WriteTen();
  const std::string good = Read("data_batch_4.bin"), before = LoadImages(folder_).parts[0].images->Fingerprint();
  int refused = 0;
  for (uint32_t n = 0; n < 150; ++n) {
    const std::string bad = Mutate(good, n);
    Write("data_batch_4.bin", bad);
    if (Refusal(folder_) != "accepted") {
      ++refused;
    } else if (bad != good) {
      EXPECT_NE(LoadImages(folder_).parts[0].images->Fingerprint(), before) << n;
    }
  }
  EXPECT_GT(refused, 75);  // all that change the length
}

TEST_F(ImagesCifar, WhatIsNotRecognised) {
  EXPECT_EQ(Refusal(At("nowhere")),
            "'" + At("nowhere") + "' is not there; give a file or a folder with pictures, or the word 'digits'");
  Write("text/readme.txt", "hello");
  for (const std::string& path : {At("text"), At("text/readme.txt")})
    EXPECT_EQ(Refusal(path).rfind("what is in '" + path + "' was not recognised: no IDX files", 0), 0u);
  ImageOptions options;
  options.kind = "cifar";
  EXPECT_EQ(Refusal(At("text"), options).rfind("there is no kind of pictures 'cifar'; did you mean 'cifar10'", 0), 0u)
      << Refusal(At("text"), options);
  // A pipe would wait for ever.
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(Refusal(At("pipe")), "'" + At("pipe") + "' is neither a file nor a folder");
}

}  // namespace
}  // namespace penstock::data
