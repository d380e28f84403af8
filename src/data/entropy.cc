#include "data/entropy.h"

#include <cmath>

namespace penstock::data {

double UnigramEntropy(const TokenStream& stream) {
  std::vector<int64_t> counts(static_cast<size_t>(stream.vocabulary()));
  for (int64_t i = 0; i < stream.size(); ++i) ++counts[static_cast<size_t>(stream[i])];
  const auto total = static_cast<double>(stream.size());
  double entropy = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    const double p = static_cast<double>(count) / total;
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace penstock::data
