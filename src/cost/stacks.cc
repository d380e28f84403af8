// The stacks there are. Read in the public repository of each; what is from memory says so.
#include "cost/stack.h"

namespace penstock::cost {
namespace {

// Calculon (systems/a100_80g.json) has 0.15 for communication over NVLink beside compute.
constexpr double kOverlapCost = 0.15;

const RegisterStack kPlain{{
    .name = "plain",
    .summary = "nothing overlaps, weight gradients are added by the product that makes them",
}};

// With fp16 and dynamic loss scaling, per parameter: gradients to fp32 and unscaled (2 + 4 + 8), clipped (8).
const RegisterStack kMegatron2021{{
    .name = "megatron-2021",
    .summary = "Megatron-LM of SC 2021: fused softmax and bias, fp16 gradients, reduced after the backward",
    .source = "NVIDIA/Megatron-LM at commit 6985e58938: megatron/model/distributed.py, mpu/layers.py, optimizer/",
    .fused_accumulation = false,
    .gradient_bytes = 2,
    .flattened_reduce = true,
    .update_bytes = 22,
    .gather_boundary = true,
}};

const RegisterStack kMegatron2021Ddp{{
    .name = "megatron-2021-ddp",
    .summary = "the same with PyTorch's data parallelism: gradients reduced in buckets beside the backward",
    .source = "NVIDIA/Megatron-LM at commit 6985e58938, --DDP-impl torch; Li et al., VLDB 2020",
    .overlap_cost = kOverlapCost,
    .fused_accumulation = false,
    .gradient_bytes = 2,
    .overlap_reduce = true,
    .update_bytes = 22,
    .gather_boundary = true,
}};

// Loss scaling on contiguous fp32 gradients: unscaled (8), clipped (8), weights copied back (4), zeroed (4).
const RegisterStack kMegatron2022{{
    .name = "megatron-2022",
    .summary = "Megatron-LM of MLSys 2023: sums of the backward beside weight gradients, fused accumulation in fp32",
    .source = "NVIDIA/Megatron-LM, tensor_parallel/layers.py of 2022 (LinearWithGradAccumulationAndAsyncCommunication); "
              "Korthikanti et al., MLSys 2023, sections 4.2.2 and 6 (from memory)",
    .overlap_tensor = true,
    .overlap_cost = kOverlapCost,
    .fused_accumulation = true,
    .update_bytes = 24,
    .gather_boundary = true,
}};

}  // namespace
}  // namespace penstock::cost
