#include "session/run/doctor_command.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/units.h"
#include "comm/thread_ranks.h"
#include "data/corpus.h"
#include "memory/accounting.h"
#include "memory/block_cache.h"
#include "runtime/environment.h"
#include "session/plan.h"
#include "session/run/calibrate.h"
#include "session/run/side_by_side.h"

namespace penstock::session {
namespace {

using Clock = std::chrono::steady_clock;

template <typename Work>
double BestSeconds(int repeats, const Work& work) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point start = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// GFLOP/s of x W^T at a GPT's shape: 1024 tokens, 512 to 2048.
double GemmRate(at::ScalarType dtype) {
  const at::Tensor x = at::ones({1024, 512}, dtype), w = at::ones({2048, 512}, dtype);
  return 2.0 * 1024 * 512 * 2048 / BestSeconds(5, [&] { at::mm(x, w.t()); }) / 1e9;
}

double CopyRate() {
  const at::Tensor from = at::ones({int64_t{64} << 20}, at::kByte);
  at::Tensor to = at::ones({int64_t{64} << 20}, at::kByte);
  return static_cast<double>(from.numel()) /
         BestSeconds(5, [&] { std::memcpy(to.data_ptr(), from.data_ptr(), from.numel()); }) / 1e9;
}

double FirstTouchRate() {
  const size_t bytes = size_t{64} << 20;
  return static_cast<double>(bytes) /
         BestSeconds(3,
                     [&] {
                       const std::unique_ptr<char[]> fresh(new char[bytes]);
                       for (size_t i = 0; i < bytes; i += 4096) const_cast<volatile char*>(fresh.get())[i] = 1;
                     }) /
         1e9;
}

}  // namespace

int RunDoctor(const DoctorOptions& options, std::ostream& out) {
  runtime::PrepareProcess(/*reproducible=*/false);
  if (options.calibrate) {
    std::ostringstream unseen;  // --json is one document
    CalibrateThisMachine(options.json ? unseen : out);
  }
  std::vector<std::string> faults, warnings;
  const runtime::Environment environment = runtime::DescribeEnvironment(1);
  const int default_threads = at::get_num_threads();
  double fp32 = 0, fp64 = 0, bf16 = 0;
  comm::RunThreadRanks(1, {}, [&](comm::Communicator&) {
    fp32 = GemmRate(at::kFloat);
    fp64 = GemmRate(at::kDouble);
    bf16 = GemmRate(at::kBFloat16);
  });
  const double copy = CopyRate(), touch = FirstTouchRate();
  const unsigned cores = std::thread::hardware_concurrency();
  const SideBySide pair = MeasureSideBySide(5, 2);
  if (cores >= 2 && pair.slowdown > 0.25)
    warnings.push_back(fmt::format(
        "two rank threads at once take {:.0f} % longer than one alone; is the machine busy, or are its cores shared?",
        100 * pair.slowdown));
  if (fp64 > 0 && fp32 < 1.3 * fp64)
    warnings.push_back(
        "fp32 matrix products are hardly faster than fp64: the BLAS does not use this processor's vector units well");
  if (!memory::CountingAllocatorInstalled())
    faults.push_back("the counting allocator is not installed: memory figures would be wrong");
  if (!memory::GetBlockCacheStats().enabled)
    warnings.push_back("the block cache is off (PENSTOCK_BLOCK_CACHE=0 or a sanitizer): expect page faults");
  std::string corpus;
  try {
    corpus = data::FindPythonLibrary();
  } catch (const Error& missing) {
    warnings.push_back(missing.what());
  }
  if (options.json) {
    out << nlohmann::ordered_json{{"libtorch", environment.libtorch},
                                  {"capability", environment.capability},
                                  {"blas_settings", environment.blas_settings},
                                  {"fingerprint", environment.Fingerprint()},
                                  {"build", environment.build},
                                  {"default_threads", default_threads},
                                  {"cores", cores},
                                  {"memory_bytes", MachineMemory()},
                                  {"gflops", {{"fp32", fp32}, {"fp64", fp64}, {"bf16", bf16}}},
                                  {"copy_gb_per_s", copy},
                                  {"first_touch_gb_per_s", touch},
                                  {"two_ranks_slowdown", pair.slowdown},
                                  {"corpus", corpus},
                                  {"faults", faults},
                                  {"warnings", warnings}}
               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
    return faults.empty() ? 0 : 1;
  }
  out << fmt::format("libtorch     {} ({} kernels), default threads {}\n", environment.libtorch, environment.capability,
                     default_threads);
  out << fmt::format("machine      {} cores, {}\n", cores, FormatBytes(MachineMemory()));
  out << fmt::format("matrix       {:.0f} GFLOP/s fp32, {:.0f} fp64, {:.0f} bf16 (one thread, 1024 x 512 x 2048)\n",
                     fp32, fp64, bf16);
  out << fmt::format("memory       copy {:.1f} GB/s, first touch of fresh pages {:.1f} GB/s\n", copy, touch);
  out << fmt::format(
      "rank threads two at once {:+.1f} % of one alone (two transformer blocks, forward and backward, median of {})\n",
      100 * pair.slowdown, pair.ratios.size());
  out << fmt::format("demo corpus  {}\n", corpus.empty() ? "not found" : corpus);
  out << fmt::format("fingerprint  {}\n", environment.Fingerprint());
  for (const std::string& warning : warnings) out << "warning: " << warning << "\n";
  for (const std::string& fault : faults) out << "fault: " << fault << "\n";
  if (faults.empty() && warnings.empty()) out << "all is well\n";
  return faults.empty() ? 0 : 1;
}

}  // namespace penstock::session
