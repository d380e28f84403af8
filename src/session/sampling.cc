#include "session/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"

namespace penstock::session {

void CheckSamplingOptions(const SamplingOptions& o) {
  if (!(o.temperature >= 0 && o.temperature < 1e6))
    throw UserError("--temperature must be a number from 0 (the likeliest token) to a million");
  if (o.top_k < 0) throw UserError("--top-k must not be negative; 0 keeps all tokens");
  if (!(o.top_p > 0 && o.top_p <= 1)) throw UserError("--top-p must be above 0 and at most 1, which keeps all tokens");
}

std::vector<double> NextTokenProbabilities(std::span<const double> logits, const SamplingOptions& options) {
  PENSTOCK_CHECK(!logits.empty(), "no logits");
  for (const double logit : logits)
    if (std::isnan(logit) || logit == HUGE_VAL)
      throw UserError("the model gives logits that are no numbers: its weights are not those of a sound training");
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  std::vector<double> p(logits.size(), 0.0);
  if (options.temperature <= 0) {
    p[static_cast<size_t>(best)] = 1;
    return p;
  }
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = std::exp((logits[i] - logits[static_cast<size_t>(best)]) / options.temperature);
  const auto normalise = [&p] {
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& value : p) value /= total;
  };
  const bool few = options.top_k > 0 && options.top_k < static_cast<int64_t>(p.size());
  if (few || options.top_p < 1) {
    // By logit, not by probability: two far below the best may both be 0.
    std::vector<int32_t> order(p.size());
    std::iota(order.begin(), order.end(), 0);
    const auto likelier = [&](int32_t a, int32_t b) {
      const double x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
      return x != y ? x > y : a < b;
    };
    size_t kept = order.size();
    if (few) {
      kept = static_cast<size_t>(options.top_k);
      std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept) - 1, order.end(), likelier);
      for (size_t i = kept; i < order.size(); ++i) p[static_cast<size_t>(order[i])] = 0;
    }
    if (options.top_p < 1) {
      normalise();
      std::sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), likelier);
      double sum = 0;
      size_t i = 0;
      while (i < kept && sum < options.top_p) sum += p[static_cast<size_t>(order[i++])];
      for (; i < kept; ++i) p[static_cast<size_t>(order[i])] = 0;
    }
  }
  normalise();
  return p;
}

int32_t TokenAt(std::span<const double> probabilities, double uniform) {
  int32_t last = -1;
  double left = uniform;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] <= 0) continue;
    last = static_cast<int32_t>(i);
    left -= probabilities[i];
    if (left < 0) break;
  }
  PENSTOCK_CHECK(last >= 0, "no token has a probability");
  return last;  // rounding may leave a little of `uniform`: it belongs to the last one
}

double SamplingUniform(uint64_t seed, int64_t sample, int64_t position) {
  const PhiloxCounter words = Philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                                      static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32)},
                                     MakePhiloxKey(seed, "sample"));
  const uint64_t bits = (uint64_t{words[1]} << 32 | words[0]) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace penstock::session
