#include "data/png_fixture.h"
#include "reference.h"

namespace penstock::data {
namespace {

const PngKind kRgb{"rgb", PNG_COLOR_TYPE_RGB};
const PngKind kGrey{"grey", PNG_COLOR_TYPE_GRAY};

std::string Hex(const ImageDataset& images) {
  std::string out;
  for (int64_t i = 0; i < images.size(); ++i) {
    for (const uint8_t p : images.Get(i).pixels) out += fmt::format("{:02x}", p);
    out += '\n';
  }
  return out;
}

// What Pillow makes of every PNG below a folder, in the order of its names: [channels, height, width] in hexadecimal.
// The arguments: folder, channels, and height and width or 0. 16 bits of grey it keeps; the high byte is ours.
constexpr const char* kPillow = R"(
import pathlib, sys
import numpy as np
from PIL import Image
folder, channels, height, width = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
for path in sorted(folder.rglob("*.png"), key=lambda p: str(p).encode()):
    image = Image.open(path)
    if image.mode.startswith("I"):
        image = Image.fromarray((np.array(image) >> 8).astype(np.uint8))
    # From a palette by way of its colours, without a warning about transparency.
    image = image.convert("RGBA").convert("RGB") if image.mode == "P" else image
    image = image.convert("L" if channels == 1 else "RGB")
    if height:
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.array(image)
    print((pixels if channels == 1 else pixels.transpose(2, 0, 1)).tobytes().hex())
)";

class ImagesFolder : public ImageFiles {
 protected:
  // Two classes, two pictures each.
  void WriteFour(const PngKind& kind = kRgb) {
    for (const char* name : {"cat/1.png", "cat/2.PNG", "dog/x.png", "dog/y.png"})
      Write(name, MakePng(kind, 5, 7, HashName(name)));
  }
};

TEST_F(ImagesFolder, SortedByClassAndName) {
  WriteFour();
  Write("cat/notes.txt", "no picture");
  Write("cat/.hidden.png", "no picture");
  const ImageData data = LoadImages(folder_ + "/");
  EXPECT_EQ(data.kind, "folder");
  ASSERT_EQ(data.parts.size(), 1u);
  EXPECT_EQ(data.parts[0].name, "all");
  const ImageDataset& images = *data.parts[0].images;
  EXPECT_EQ(images.classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(images.shape(), (ImageShape{3, 5, 7}));
  const char* names[] = {"cat/1.png", "cat/2.PNG", "dog/x.png", "dog/y.png"};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(images.Label(i), i / 2);
    // The file has red, green, blue of a pixel together; here the planes are apart.
    const std::string file = RandomBytes(3 * 5 * 7, HashName(names[i])), planes = Pixels(images, i);
    for (size_t c = 0; c < 3; ++c)
      for (size_t k = 0; k < 35; ++k) ASSERT_EQ(planes[c * 35 + k], file[k * 3 + c]) << i << " " << c << " " << k;
  }
}

TEST_F(ImagesFolder, GreyUnlessOneHasColour) {
  WriteFour(kGrey);
  EXPECT_EQ(LoadImages(folder_).parts[0].images->shape().channels, 1);
  Write("dog/z.png", MakePng(kRgb, 5, 7, 1));
  const ImageData data = LoadImages(folder_);
  EXPECT_EQ(data.parts[0].images->shape().channels, 3);
  const std::string grey = RandomBytes(35, HashName("cat/1.png"));
  EXPECT_EQ(Pixels(*data.parts[0].images, 0), grey + grey + grey);
}

TEST_F(ImagesFolder, Parts) {
  WriteFour();
  for (const char* name : {"train/b/1.png", "train/a/1.png", "val/b/1.png"})
    Write("set/" + std::string(name), Read("cat/1.png"));
  const ImageData data = LoadImages(At("set"));
  ASSERT_EQ(data.parts.size(), 2u);
  EXPECT_EQ(data.parts[0].name, "train");
  EXPECT_EQ(data.parts[1].name, "val");
  EXPECT_EQ(data.parts[1].images->classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(data.parts[1].images->Label(0), 1);
  Write("set/other/1.png", Read("cat/1.png"));
  EXPECT_EQ(Refusal(At("set")), "'" + At("set/other") +
                                    "' stands beside 'train' and is no part with classes; the parts of a folder are "
                                    "train, test, val, validation");
  // A class may be called `train`.
  Write("trains/train/1.png", Read("cat/1.png"));
  Write("trains/tram/1.png", Read("cat/1.png"));
  EXPECT_EQ(LoadImages(At("trains")).parts[0].images->classes(), (std::vector<std::string>{"train", "tram"}));
}

TEST_F(ImagesFolder, EveryKindAsPillowReadsIt) {
  PENSTOCK_NEEDS_REFERENCE();
  for (const PngKind& kind : AllPngKinds()) {
    const std::string name = (kind.grey() ? "grey/" : "colour/") + kind.name + ".png";
    Write("set/" + name, MakePng(kind, 11, 13, HashName(kind.name)));
    if (kind.grey()) Write("greys/all/" + kind.name + ".png", Read("set/" + name));
  }
  const ImageData all = LoadImages(At("set")), greys = LoadImages(At("greys"));
  EXPECT_EQ(all.parts[0].images->size(), 52);
  EXPECT_EQ(Hex(*all.parts[0].images), RunReference(kPillow, At("set") + " 3 0 0"));
  EXPECT_EQ(greys.parts[0].images->shape(), (ImageShape{1, 11, 13}));
  EXPECT_EQ(Hex(*greys.parts[0].images), RunReference(kPillow, At("greys") + " 1 0 0"));
  ImageOptions options;
  options.channels = 1;
  EXPECT_EQ(Hex(*LoadImages(At("set"), options).parts[0].images), RunReference(kPillow, At("set") + " 1 0 0"));
}

// Pillow rounds after each of the two directions, so that one pixel in seven is a grey level apart.
TEST_F(ImagesFolder, ResizedAsPillowDoes) {
  PENSTOCK_NEEDS_REFERENCE();
  uint64_t seed = 0;
  for (const auto& [height, width] : {std::pair{11, 13}, {32, 32}, {3, 50}, {70, 9}, {1, 1}, {8, 200}}) {
    ++seed;
    Write(fmt::format("set/a/{}.png", seed), MakePng(kRgb, height, width, seed));
  }
  for (const auto& [height, width] : {std::pair{8, 8}, {1, 1}, {17, 40}, {64, 5}}) {
    ImageOptions options;
    options.height = height;
    options.width = width;
    const std::string ours = Hex(*LoadImages(At("set"), options).parts[0].images);
    const std::string theirs = RunReference(kPillow, fmt::format("{} 3 {} {}", At("set"), height, width));
    ASSERT_EQ(ours.size(), theirs.size());
    int differing = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      if (ours[i] == '\n') continue;
      const int a = std::stoi(ours.substr(i, 2), nullptr, 16), b = std::stoi(theirs.substr(i, 2), nullptr, 16);
      ASSERT_LE(std::abs(a - b), 1) << height << " x " << width << ", digit " << i;
      differing += a != b;
      ++i;
    }
    EXPECT_LT(differing, static_cast<int>(ours.size() / 2 / 4));
  }
}

TEST_F(ImagesFolder, ResizingKeepsWhatIsEven) {
  Write("a/1.png", MakePng(kGrey, 1, 1, 1));
  ImageOptions options;
  options.height = 4;
  options.width = 9;
  EXPECT_EQ(Pixels(*LoadImages(folder_, options).parts[0].images, 0), std::string(36, RandomBytes(1, 1)[0]));
  // Two by two pixels into one: their mean.
  Write("a/1.png", MakePng(kGrey, 2, 2, 1));
  options.height = options.width = 1;
  const std::string four = RandomBytes(4, 1);
  double mean = 0;
  for (const char p : four) mean += static_cast<uint8_t>(p) / 4.0;
  EXPECT_NEAR(static_cast<uint8_t>(Pixels(*LoadImages(folder_, options).parts[0].images, 0)[0]), mean, 0.51);
}

TEST_F(ImagesFolder, RefusalsNameFileAndRule) {
  WriteFour();
  const std::string good = Read("dog/x.png"), path = At("dog/x.png");
  Write("dog/x.png", MakePng(kRgb, 7, 5, 1));
  EXPECT_EQ(Refusal(folder_), "'" + path + "' has 7 x 5 pixels (height x width), '" + At("cat/1.png") +
                                  "' has 5 x 7; they must agree, unless all are resized to one size");
  Write("dog/x.png", "GIF89a");
  EXPECT_EQ(Refusal(folder_), "'" + path + "' is no PNG file: it does not begin with the signature and the chunk IHDR");
  Write("dog/x.png", good.substr(0, good.size() - 12));
  EXPECT_EQ(Refusal(folder_), "'" + path + "' is damaged: the file ends too early; get the file again");
  std::string broken = good;
  broken[good.size() - 30] = static_cast<char>(broken[good.size() - 30] ^ 1);
  Write("dog/x.png", broken);
  EXPECT_EQ(Refusal(folder_).rfind("'" + path + "' is damaged: ", 0), 0u) << Refusal(folder_);
  std::string huge = good;
  huge[16] = 1;  // 2^24 pixels wide
  Write("dog/x.png", WithRightSums(huge));
  EXPECT_EQ(Refusal(folder_), "'" + path +
                                  "' says it has 5 x 16777223 pixels; pictures of up to 16384 a side and "
                                  "67108864 pixels are read");
  Write("dog/x.png", good);
  Write("dog/z.jpeg", "whatever");
  EXPECT_EQ(Refusal(folder_),
            "'" + At("dog/z.jpeg") + "' is not a PNG file, and only those are read; convert it or take it away");
  std::filesystem::remove(At("dog/z.jpeg"));
  Write("dog/more/1.png", good);
  EXPECT_EQ(Refusal(folder_),
            "'" + At("dog/more") + "' is a folder inside the class 'dog'; the folder of a class holds PNG files only");
  std::filesystem::remove_all(At("dog/more"));
  Write("eel/readme", "soon");
  EXPECT_EQ(Refusal(folder_), "the class 'eel' has no PNG file in '" + At("eel") + "'");
  std::filesystem::remove_all(At("eel"));
  ImageOptions small;
  small.max_bytes = 4 * (3 * 5 * 7 + 4) - 1;
  EXPECT_EQ(Refusal(folder_, small).rfind("'" + At("dog/y.png") + "': with it the pictures take 436 B", 0), 0u);
  EXPECT_EQ(Refusal(folder_), "accepted");
}

// With the check sums as they are, a change of the file either shows or does not reach the pixels.
TEST_F(ImagesFolder, Mutations) {
  int refused = 0, total = 0;
  for (const PngKind& kind : {kRgb, PngKind{"palette", PNG_COLOR_TYPE_PALETTE, 4, true, true}}) {
    const std::string good = MakePng(kind, 9, 6, 5);
    Write("set/a/1.png", good);
    const std::string before = LoadImages(At("set")).parts[0].images->Fingerprint();
    for (uint32_t n = 0; n < 400; ++n, ++total) {
      Write("set/a/1.png", Mutate(good, n));
      if (Refusal(At("set")) != "accepted")
        ++refused;
      else
        EXPECT_EQ(LoadImages(At("set")).parts[0].images->Fingerprint(), before) << n;
    }
  }
  EXPECT_GT(refused, total * 3 / 4);
}

// With the check sums put right after the change, libpng itself meets wrong lengths, types and compressed data.
TEST_F(ImagesFolder, MutationsBehindTheCheckSums) {
  int refused = 0, total = 0;
  for (const PngKind& kind : AllPngKinds()) {
    const std::string good = MakePng(kind, 9, 6, 5);
    for (uint32_t n = 0; n < 25; ++n, ++total) {
      Write("set/a/1.png", WithRightSums(Mutate(good, 1000 + n)));
      refused += Refusal(At("set")) != "accepted";
    }
  }
  EXPECT_GT(refused, total / 2);
  EXPECT_LT(refused, total);  // some pictures are only different
}

}  // namespace
}  // namespace penstock::data
