#include "optim/norm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace penstock::optim {
namespace {

// T over values[0, n) (docs/numerics.md R2); recursion depth log2(n).
double Tree(const double* values, size_t n) {
  if (n == 1) return values[0];
  const size_t left = (n + 1) / 2;
  return Tree(values, left) + Tree(values + left, n - left);
}

double Largest(std::span<const double> values) {
  double largest = 0.0;
  for (const double x : values)
    if (x > largest || std::isnan(x)) largest = x;
  return largest;
}

double Fold(std::span<const double> values, NormKind kind) {
  if (values.empty()) return 0.0;
  return kind == NormKind::l2 ? Tree(values.data(), values.size()) : Largest(values);
}

template <typename T>
int64_t Reference(const T* data, int64_t n, NormKind kind, double* out) {
  int64_t non_finite = 0;
  for (int64_t block = 0; block < NumNormBlocks(n); ++block) {
    double lanes[4] = {0.0, 0.0, 0.0, 0.0};
    double largest = 0.0;
    const int64_t begin = block * kNormBlock;
    for (int64_t i = begin; i < std::min(n, begin + kNormBlock); ++i) {
      const auto x = static_cast<double>(data[i]);
      if (!std::isfinite(x)) ++non_finite;
      lanes[(i - begin) % 4] += x * x;
      if (std::abs(x) > largest || std::isnan(x)) largest = std::abs(x);
    }
    out[block] = kind == NormKind::l2 ? (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) : largest;
  }
  return non_finite;
}

}  // namespace

NormKind ParseNormKind(std::string_view text) {
  if (text == "l2") return NormKind::l2;
  if (text == "inf") return NormKind::infinity;
  throw UserError("there is no norm '{}'; known: l2, inf", text);
}

int64_t BlockSumsReference(const float* data, int64_t n, NormKind kind, double* out) {
  return Reference(data, n, kind, out);
}
int64_t BlockSumsReference(const double* data, int64_t n, NormKind kind, double* out) {
  return Reference(data, n, kind, out);
}

double FinishParameter(std::span<const double> blocks, NormKind kind) { return Fold(blocks, kind); }

double FinishNorm(std::span<const double> parameters, NormKind kind) {
  const double folded = Fold(parameters, kind);
  return kind == NormKind::l2 ? std::sqrt(folded) : folded;
}

NormLayout::NormLayout(std::span<const int64_t> numel) : first_block_{0} {
  for (const int64_t n : numel) first_block_.push_back(first_block_.back() + NumNormBlocks(n));
}

double NormLayout::Finish(std::span<const double> sums, NormKind kind) const {
  PENSTOCK_CHECK_EQ(static_cast<int64_t>(sums.size()), num_blocks());
  std::vector<double> parameters(num_parameters());
  for (int p = 0; p < num_parameters(); ++p)
    parameters[p] = FinishParameter(sums.subspan(first_block(p), first_block(p + 1) - first_block(p)), kind);
  return FinishNorm(parameters, kind);
}

float ClipFactor(double norm, double clip) {
  if (clip == 0.0) return 1.0f;
  const double factor = clip / (norm + 1e-6);
  return factor < 1.0 || std::isnan(factor) ? static_cast<float>(factor) : 1.0f;
}

}  // namespace penstock::optim
