// src/runtime/environment.h
//
// What the bits of a run depend on besides its configuration (docs/numerics.md, scope and R15), and the settings of the
// process that must be made before libtorch computes anything.
#pragma once

#include <string>

namespace penstock::runtime {

// First thing in a command that computes: counting allocator, one BLAS policy, and deterministic algorithms when
// `reproducible` (they stay on). May be called again, not while ranks run.
void PrepareProcess(bool reproducible);

struct Environment {
  std::string libtorch;       // version
  std::string build;          // libtorch's own description of its build: BLAS, oneDNN, compiler
  std::string capability;     // kernels in use: "AVX2"
  std::string blas_settings;  // MKL_CBWR, ONEDNN_MAX_CPU_ISA, ATEN_CPU_CAPABILITY as set
  int intra_op_threads = 1;   // per rank
  // Short text of all of it: equal text, equal bits.
  std::string Fingerprint() const;
};
Environment DescribeEnvironment(int intra_op_threads);

}  // namespace penstock::runtime
