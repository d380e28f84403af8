// src/comm/common/handover.h
//
// How a tensor crosses to another rank of the same process: as a pointer, when it is contiguous and 64-byte aligned,
// else as a copy that is (docs/numerics.md R6). History stays behind.
#pragma once

#include <ATen/core/Tensor.h>

namespace penstock::comm {

at::Tensor HandOver(const at::Tensor& tensor);
// The bytes of its elements; 0 when undefined.
int64_t BytesOf(const at::Tensor& tensor);

}  // namespace penstock::comm
