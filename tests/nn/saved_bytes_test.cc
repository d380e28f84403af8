// model::SavedBytes against the bytes that a forward leaves behind, counted by an allocator.
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "stage_run.h"

namespace penstock::nn {
namespace {

using model::Precision;

// Counts live bytes of this process's CPU tensors while it is installed; blocks carry their size in front.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    auto* block = static_cast<char*>(std::aligned_alloc(64, (n + 2 * 64 - 1) / 64 * 64));
    *reinterpret_cast<size_t*>(block) = n;
    live += static_cast<int64_t>(n);
    return {block + 64, block + 64, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t n) const override { default_copy_data(to, from, n); }

  static inline std::atomic<int64_t> live = 0;

 private:
  static void Free(void* data) {
    char* block = static_cast<char*>(data) - 64;
    live -= static_cast<int64_t>(*reinterpret_cast<size_t*>(block));
    std::free(block);
  }
};

class SavedBytes : public testing::Test {
 protected:
  void SetUp() override { c10::SetAllocator(c10::kCPU, &allocator_, 1); }
  // Blocks that outlive the test carry their own deleter, so the old allocator may come back.
  void TearDown() override { c10::SetAllocator(c10::kCPU, old_, 1); }

 private:
  c10::Allocator* old_ = c10::GetAllocator(c10::kCPU);
  static inline CountingAllocator allocator_;
};

TEST_F(SavedBytes, AreWhatAForwardKeeps) {
  for (const char* family : {"gpt2", "llama"})
    for (const Precision precision : {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16}) {
      model::GptConfig config = TinyConfig(family);
      config.dropout = 0.1;  // masks are not kept
      const model::ModelSpec spec = model::BuildGptSpec(config);
      const auto parameters = InitialParameters(spec, precision);
      const MicroBatchInputs batch = MakeMicroBatch({0, 1, 2}, 16, spec.vocabulary);
      const LayerContext context{.batch = &batch, .precision = precision};
      const auto layers = BuildLayers(spec, 0, static_cast<int>(spec.layers.size()));
      std::vector<at::Tensor> current;
      for (size_t i = 0; i < layers.size(); ++i) {
        at::AutoGradMode grad(true);
        std::vector<at::Tensor> mine;
        for (const int p : spec.layers[i].parameters) mine.push_back(parameters[p].detach().requires_grad_(true));
        std::vector<at::Tensor> inputs;
        for (const at::Tensor& t : current) inputs.push_back(t.detach().requires_grad_(true));
        const int64_t before = CountingAllocator::live;
        const std::vector<at::Tensor> outputs = layers[i]->Forward(inputs, mine, context);
        int64_t kept = CountingAllocator::live - before;
        for (const at::Tensor& t : outputs) kept -= static_cast<int64_t>(t.storage().nbytes());
        for (const at::Tensor& t : inputs) kept += static_cast<int64_t>(t.storage().nbytes());
        const auto predicted = static_cast<double>(model::SavedBytes(spec.layers[i], 3, 16, precision));
        EXPECT_NEAR(static_cast<double>(kept), predicted, 0.01 * predicted + 64)
            << family << " " << spec.layers[i].path << " " << model::PrecisionName(precision);
        current.clear();
        for (const at::Tensor& t : outputs) current.push_back(t.detach());
      }
    }
}

}  // namespace
}  // namespace penstock::nn
