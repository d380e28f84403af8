#include "runtime/environment.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/csrc/api/include/torch/version.h>

#include <cstdlib>
#include <mutex>

#include "base/hash.h"
#include "memory/accounting.h"

namespace penstock::runtime {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : fmt::format("{}={}, ", name, value);
}

}  // namespace

void PrepareProcess(bool reproducible) {
  static std::once_flag once;
  std::call_once(once, [] {
    // Before the BLAS starts: threads are ours to give, never the library's guess.
    setenv("MKL_DYNAMIC", "FALSE", /*overwrite=*/1);
    memory::InstallCountingAllocator();
  });
  if (reproducible) {
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);  // every buffer is written before it is read
  }
}

Environment DescribeEnvironment(int intra_op_threads) {
  Environment e;
  e.libtorch = TORCH_VERSION;
  e.build = at::show_config();
  e.capability = at::get_cpu_capability();
  e.blas_settings = Variable("MKL_CBWR") + Variable("ONEDNN_MAX_CPU_ISA") + Variable("ATEN_CPU_CAPABILITY");
  e.intra_op_threads = intra_op_threads;
  return e;
}

std::string Environment::Fingerprint() const {
  return fmt::format("libtorch {} {}, {}{} thread{} per rank, build {}", libtorch, capability, blas_settings,
                     intra_op_threads, intra_op_threads == 1 ? "" : "s", Hash(build).Hex().substr(0, 8));
}

}  // namespace penstock::runtime
