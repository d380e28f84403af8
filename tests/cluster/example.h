// A small valid file with everything in it.
#pragma once

#include <string_view>

namespace penstock::cluster {

inline constexpr std::string_view kExample = R"toml([cluster]
name = "example"
summary = "two kinds of devices"
currency = "EUR"
[[device]]
name = "fast"
summary = "a chip"
count = 8
memory_bytes = "80 GiB"
memory_bytes_per_second = "2 TB/s"
flops_per_second = { fp32 = 19.5e12, bf16 = 312e12 }
launch_seconds = 5e-6
efficiency.gemm = [[1e9, 0.5], [1e11, 0.9]]
host_memory_bytes = 1000
price_per_hour = 2
source = "data sheet"
sources.flops_per_second = "measured"
sources."flops_per_second.fp32" = "white paper"
sources.efficiency.gemm = "a paper"
[[device]]
name = "slow"
count = 8
memory_bytes = 1024
memory_bytes_per_second = 1e9
flops_per_second = { fp32 = 1e12 }
cores = 4
source = "data sheet"
[[level]]
name = "node"
size = 4
latency_seconds = 1e-6
bytes_per_second = "100 GB/s"
efficiency = [[1, 0.7]]
source = "stated"
[[level]]
name = "rack"
size = 4
latency_seconds = 2e-6
bytes_per_second = 1e9
group_bytes_per_second = 3e9
source = "stated"
[[override]]
from = 9
to = 2
latency_seconds = 1
bytes_per_second = 5
source = "measured"
[[override]]
from = 0
to = 1
latency_seconds = 2
bytes_per_second = 6
source = "measured"
)toml";

}  // namespace penstock::cluster
