// src/session/sampling.h
//
// From logits to the next token. Exact and in plain loops; a random number belongs to (seed, sample, position), so a
// text does not depend on how the logits were computed, nor on what else is generated.
//
// The order of the restrictions: temperature, then the top_k likeliest, then the nucleus of top_p among those.
//   nucleus: the smallest set of likeliest tokens whose probabilities add up to at least top_p (Holtzman et al., "The
//   curious case of neural text degeneration", 2020); never empty. Of tokens with equal logits the lower id counts as
//   likelier, so that the sets are unique.
// Stateless; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::session {

struct SamplingOptions {
  double temperature = 0.8;  // logits are divided by it; 0: always the likeliest token
  int64_t top_k = 0;         // 0: all
  double top_p = 1.0;        // in (0, 1]; 1: all
};

// UserError for values that mean nothing; names them as the options of `penstock generate`.
void CheckSamplingOptions(const SamplingOptions& options);

// Probabilities of the tokens, adding up to 1; 0 for those that are left out. UserError when a logit is not a number:
// the model has diverged.
std::vector<double> NextTokenProbabilities(std::span<const double> logits, const SamplingOptions& options);

// The token at `uniform` (in (0, 1)) of the cumulative probabilities; never one of probability 0.
int32_t TokenAt(std::span<const double> probabilities, double uniform);

// In (0, 1), 53 bits, of Philox (base/philox.h).
double SamplingUniform(uint64_t seed, int64_t sample, int64_t position);

}  // namespace penstock::session
