// The stacks there are. Read in the public repository of each; what is from memory says so.
#include "cost/stack.h"

namespace penstock::cost {
namespace {

// Calculon (systems/a100_80g.json) has 0.15 for communication over NVLink beside compute.
constexpr double kOverlapCost = 0.15;

// What PyTorch runs for a layer of Megatron-LM beside the fused kernels, in elements of 16 bits:
//   qkv         backward: the three gradients are put together (2 x 3 h), their sum for the bias (3 h), of 4 h
//   proj        the result of attention is copied to the layout of the product, and its gradient back (2 h of 2 h)
//   dropout     a byte per element of mask, written and read (0.5 of 2)
//   norm        a second kernel for the gradients of gain and bias reads both inputs (2 h of 2 h)
//   activation  the sum for the bias reads the gradient (f of 2 f)
//   residual    the mask (0.5 h of 3 h); backward: the mask, and the sum for the bias (h)
//   loss        logits to fp32 (3), maximum (2), subtracted (4), exponential (4), sum (2), divided (4), where the list
//               has 1; backward: scaled (4) and back to 16 bits (3), where the list has 2
std::vector<ExtraPasses> MegatronPasses() {
  return {{"qkv", 0, 2.25}, {"proj", 1, 1},         {"dropout", 0.25, 0.25},    {"norm", 0, 1}, {"norm1", 0, 1},
          {"norm2", 0, 1},  {"activation", 0, 0.5}, {"residual", 1.0 / 6, 0.5}, {"loss", 18, 5}};
}

const RegisterStack kPlain{{
    .name = "plain",
    .summary = "nothing overlaps, weight gradients are added by the product that makes them",
}};

// With fp16 and dynamic loss scaling, per parameter: gradients to fp32 and unscaled (2 + 4 + 8), clipped (8).
const RegisterStack kMegatron2021{{
    .name = "megatron-2021",
    .summary = "Megatron-LM of SC 2021: fused softmax and bias, fp16 gradients, reduced after the backward",
    .source =
        "NVIDIA/Megatron-LM at commit 6985e58938: megatron/model/distributed.py (fp16 gradients, flattened, after the "
        "backward); mpu/cross_entropy.py at 34ed99d1f0; layers, pipeline messages and optimizer from memory",
    .fused_accumulation = false,
    .gradient_bytes = 2,
    .reduce_at_end = true,
    .flattened_reduce = true,
    .update_bytes = 22,
    .passes = MegatronPasses(),
    .waits_for_sends = true,
    .gather_boundary = true,
}};

const RegisterStack kMegatron2021Ddp{{
    .name = "megatron-2021-ddp",
    .summary = "the same with PyTorch's data parallelism: gradients reduced in buckets beside the backward",
    .source = "NVIDIA/Megatron-LM at commit 6985e58938, --DDP-impl torch; Li et al., VLDB 2020; else as megatron-2021",
    .overlap_cost = kOverlapCost,
    .fused_accumulation = false,
    .gradient_bytes = 2,
    .overlap_reduce = true,
    .update_bytes = 22,
    .passes = MegatronPasses(),
    .waits_for_sends = true,
    .gather_boundary = true,
}};

// Loss scaling on contiguous fp32 gradients: unscaled (8), clipped (8), weights copied back (4), zeroed (4).
const RegisterStack kMegatron2022{{
    .name = "megatron-2022",
    .summary = "Megatron-LM of MLSys 2023: sums of the backward beside weight gradients, fused accumulation in fp32",
    .source =
        "NVIDIA/Megatron-LM, megatron/core/tensor_parallel/layers.py at commit 000c4ac24f: the backward of its linear "
        "layers. That the runs of the paper had both fusions is inferred from its date and sections (from memory)",
    .overlap_tensor = true,
    .overlap_cost = kOverlapCost,
    .fused_accumulation = true,
    .reduce_at_end = true,
    .update_bytes = 24,
    .passes = MegatronPasses(),
    .waits_for_sends = true,
    .gather_boundary = true,
}};

}  // namespace
}  // namespace penstock::cost
