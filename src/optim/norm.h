// src/optim/norm.h
//
// Gradient norms whose bits do not depend on the layout (docs/numerics.md R9), and the clipping factor.
// Each logical parameter is cut in blocks of 1,024 elements by logical offset. A rank computes one double per block
// that it owns (shards begin on block borders), the doubles are exchanged, and every rank finishes the same tree.
//
//   NormLayout layout({numel of every parameter, in canonical order});
//   std::vector<double> sums(layout.num_blocks());
//   non_finite += BlockSums(gradient, n, NormKind::l2, &sums[layout.first_block(p) + first_element / kNormBlock]);
//   ... exchange so that every rank has every block ...
//   double norm = layout.Finish(sums, NormKind::l2);
//   float factor = ClipFactor(norm, clip);
// Parameters that live whole on one rank can be exchanged as one double each: FinishParameter on the owner, then
// FinishNorm over all parameters.
// Threads: all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace penstock::optim {

inline constexpr int64_t kNormBlock = 1024;

enum class NormKind { l2, infinity };

// "l2" or "inf"; UserError otherwise.
NormKind ParseNormKind(std::string_view text);

constexpr int64_t NumNormBlocks(int64_t numel) { return (numel + kNormBlock - 1) / kNormBlock; }

// One double per block of data[0, n) into out[0, NumNormBlocks(n)): the sum of squares in fp64 in four fixed lanes
// (element k in lane k mod 4, lanes added (0+1)+(2+3)), or the largest magnitude (NaN when there is one). data[0]
// lies on a block border. Returns how many elements are not finite. A sum of fp64 squares may overflow without any:
// then the norm itself is infinite, and `check` must refuse the update as well.
int64_t BlockSums(const float* data, int64_t n, NormKind kind, double* out);
int64_t BlockSums(const double* data, int64_t n, NormKind kind, double* out);
// The obvious loop, kept as the oracle of the fast one.
int64_t BlockSumsReference(const float* data, int64_t n, NormKind kind, double* out);
int64_t BlockSumsReference(const double* data, int64_t n, NormKind kind, double* out);

// Blocks of one parameter -> one double (tree, or maximum). 0 for no blocks.
double FinishParameter(std::span<const double> blocks, NormKind kind);
// One double per parameter in canonical order -> the norm (square root in fp64 for l2).
double FinishNorm(std::span<const double> parameters, NormKind kind);

// Where the blocks of each parameter lie in the vector of all block sums.
class NormLayout {
 public:
  explicit NormLayout(std::span<const int64_t> numel);
  int64_t num_blocks() const { return first_block_.back(); }
  int num_parameters() const { return static_cast<int>(first_block_.size()) - 1; }
  int64_t first_block(int parameter) const { return first_block_[parameter]; }
  // The global norm; `sums` has num_blocks() entries.
  double Finish(std::span<const double> sums, NormKind kind) const;

 private:
  std::vector<int64_t> first_block_;  // one more entry than parameters
};

// float(min(1, clip / (norm + 1e-6))); 1 when clip is 0 (clipping off). NaN for a norm that is NaN.
float ClipFactor(double norm, double clip);

}  // namespace penstock::optim
