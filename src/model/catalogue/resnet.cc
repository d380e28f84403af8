// Residual networks: convolutions without bias, each followed by BatchNorm. He et al., CVPR 2016.
//   imagenet   7x7 stem and max pool, 1x1 convolutions in the shortcuts that change shape, stride on the 3x3 of a
//              bottleneck (as the common libraries build it)
//   cifar      3x3 stem, shortcuts without parameters (every second pixel, zeros for new channels), 6n + 2 layers
//   chain      "stem", "blocks.0" ..., "head" (mean over pixels, classes, loss)
// Every size is per sample: length is 1.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/registry.h"
#include "model/build/operations.h"
#include "model/build/spec_writer.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

struct ResnetConfig {
  std::vector<int64_t> blocks{};     // of every stage
  int64_t width = 64;                // channels of the first stage, doubled by every other
  bool bottleneck = false;           // 1x1, 3x3, 1x1 to four times the width; otherwise two 3x3
  bool imagenet_stem = true;         // 7x7 and max pool; otherwise 3x3
  bool projection_shortcuts = true;  // 1x1 convolutions; otherwise without parameters
  int64_t pixels = 224;              // of a side
  int64_t classes = 1000;
};

struct Image {
  int64_t channels = 3, side = 0;
  int64_t numel() const { return channels * side * side; }
};

std::vector<BoundaryTensor> Boundary(const Image& image) {
  return {{.name = "image", .shape = {kBatch, image.channels, image.side, image.side}}};
}

// Writes one layer: parameters, operations and what is kept, convolution by convolution.
class ConvolutionWriter {
 public:
  ConvolutionWriter(ModelSpec& spec, LayerSpec& layer) : writer_(spec, layer), layer_(layer) {}

  // Convolution and BatchNorm. `residual`: another tensor is added before the activation, in the same pass.
  // `activated`: ReLU follows; `kept`: and its output is kept here (false: it is the next layer's input).
  // BatchNorm reads its input twice (statistics first), and its backward input and gradient twice.
  Image Convolve(const std::string& name, const Image& in, int64_t channels, int64_t kernel, int64_t stride,
                 bool residual, bool kept) {
    const Image out{channels, (in.side + stride - 1) / stride};
    const int64_t fan_out = kernel * kernel * channels;
    writer_.Tensor(name + ".weight", {channels, in.channels, kernel, kernel},
                   std::sqrt(2.0 / static_cast<double>(fan_out)));
    writer_.Norm(name + ".norm", channels);
    layer_.operations.push_back({.name = name,
                                 .kind = OperationKind::gemm,
                                 .flops = PerSample(2 * kernel * kernel * in.channels * out.numel()),
                                 .moved = PerSample(in.numel() + out.numel()),
                                 .weights = kernel * kernel * in.channels * channels,
                                 .split = TensorSplit::replicated});
    layer_.operations.push_back(Moving(name + ".norm", PerSample((residual ? 4 : 3) * out.numel()),
                                       residual ? 6.0 / 4 : 5.0 / 3, TensorSplit::replicated, 2 * channels));
    layer_.saved = layer_.saved + PerSample(out.numel());  // input of the norm
    if (kept) layer_.saved_operands = layer_.saved_operands + PerSample(out.numel());
    return out;
  }

  // The layer's input, an operand of its first product.
  void KeepInput(const Image& in) {
    layer_.saved = layer_.saved + PerSample(in.numel());
    layer_.operands_in_saved = PerSample(in.numel());
  }

 private:
  SpecWriter writer_;
  LayerSpec& layer_;
};

LayerSpec Stem(ModelSpec& spec, const ResnetConfig& config, Image& image) {
  LayerSpec layer{.path = "stem", .kind = "stem"};
  ConvolutionWriter writer(spec, layer);
  writer.KeepInput(image);
  const bool pool = config.imagenet_stem;
  const Image convolved = writer.Convolve("conv", image, config.width, pool ? 7 : 3, pool ? 2 : 1, false, pool);
  layer.operations.front().input_gradient = false;
  image = convolved;
  if (pool) {
    image.side /= 2;
    layer.operations.push_back(
        Moving("pool", PerSample(convolved.numel() + image.numel()), 1, TensorSplit::replicated));
  }
  CountFlops(layer);
  layer.boundary = Boundary(image);
  return layer;
}

LayerSpec Block(ModelSpec& spec, const ResnetConfig& config, int64_t index, int64_t width, int64_t stride,
                Image& image) {
  LayerSpec layer{.path = fmt::format("blocks.{}", index), .kind = "block", .repeated = true};
  ConvolutionWriter writer(spec, layer);
  writer.KeepInput(image);
  const Image in = image;
  const int64_t out_channels = config.bottleneck ? 4 * width : width;
  const bool reshaped = stride != 1 || in.channels != out_channels;
  if (config.bottleneck) {
    image = writer.Convolve("conv1", in, width, 1, 1, false, true);
    image = writer.Convolve("conv2", image, width, 3, stride, false, true);
    image = writer.Convolve("conv3", image, out_channels, 1, 1, true, false);
  } else {
    image = writer.Convolve("conv1", in, width, 3, stride, false, true);
    image = writer.Convolve("conv2", image, width, 3, 1, true, false);
  }
  if (reshaped && config.projection_shortcuts) {
    writer.Convolve("shortcut", in, out_channels, 1, stride, false, false);
  } else if (reshaped) {
    layer.operations.push_back(Moving("shortcut", PerSample(2 * image.numel()), 1, TensorSplit::replicated));
  }
  CountFlops(layer);
  layer.boundary = Boundary(image);
  return layer;
}

LayerSpec Head(ModelSpec& spec, const ResnetConfig& config, const Image& image) {
  LayerSpec layer{.path = "head", .kind = "head"};
  SpecWriter writer(spec, layer);
  writer.Linear("fc", config.classes, image.channels, 1 / std::sqrt(static_cast<double>(image.channels)));
  layer.operations.push_back(Moving("pool", PerSample(image.numel() + image.channels), 1, TensorSplit::replicated));
  layer.operations.push_back(Gemm("fc", PerSample(1), image.channels, config.classes, true, TensorSplit::replicated));
  layer.operations.push_back(Moving("loss", PerSample(config.classes), 2, TensorSplit::replicated));
  CountFlops(layer);
  layer.saved = PerSample(image.numel());  // its input: the activation before it wants its output back
  layer.saved_operands = PerSample(image.channels);
  return layer;
}

ModelSpec Build(const ResnetConfig& config) {
  ModelSpec spec;
  spec.family = "resnet";
  spec.context = 1;
  Image image{.side = config.pixels};
  spec.layers.push_back(Stem(spec, config, image));
  spec.hidden = image.numel();
  int64_t index = 0;
  for (size_t stage = 0; stage < config.blocks.size(); ++stage)
    for (int64_t i = 0; i < config.blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      spec.layers.push_back(Block(spec, config, index++, config.width << stage, stride, image));
      spec.hidden = std::max(spec.hidden, image.numel());
    }
  spec.layers.push_back(Head(spec, config, image));
  CheckSpec(spec);
  return spec;
}

void Add(std::string name, std::string summary, const ResnetConfig& config) {
  Registry<CatalogueEntry>::Add({.name = std::move(name),
                                 .summary = std::move(summary),
                                 .source = "He et al., CVPR 2016",
                                 .sample = {3, config.pixels, config.pixels},
                                 .build = [config] { return Build(config); }});
}

const bool kRegistered = [] {
  Add("resnet-18", "ImageNet", {.blocks = {2, 2, 2, 2}});
  Add("resnet-50", "ImageNet, stride on the 3x3", {.blocks = {3, 4, 6, 3}, .bottleneck = true});
  const auto cifar = [](int64_t n) -> ResnetConfig {
    return {.blocks = {n, n, n},
            .width = 16,
            .imagenet_stem = false,
            .projection_shortcuts = false,
            .pixels = 32,
            .classes = 10};
  };
  Add("resnet-20-cifar", "CIFAR-10, n = 3", cifar(3));
  Add("resnet-110-cifar", "CIFAR-10, n = 18", cifar(18));
  Add("resnet-18-cifar", "CIFAR-10, the ImageNet network with a 3x3 stem and no pool",
      {.blocks = {2, 2, 2, 2}, .imagenet_stem = false, .pixels = 32, .classes = 10});
  return true;
}();

}  // namespace
}  // namespace penstock::model
