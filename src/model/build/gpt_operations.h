// src/model/build/gpt_operations.h
//
// Operations of the layers of a GPT, of a resolved config. Tensor parallelism is Megatron-LM's (Shoeybi et al. 2019,
// section 3): columns of the first matrix of a pair, rows of the second, heads in between, the vocabulary at both ends.
#pragma once

#include <vector>

#include "model/gpt.h"
#include "model/operation.h"

namespace penstock::model {

std::vector<Operation> EmbedOperations(const GptConfig& config);
std::vector<Operation> BlockOperations(const GptConfig& config);
std::vector<Operation> HeadOperations(const GptConfig& config);

}  // namespace penstock::model
