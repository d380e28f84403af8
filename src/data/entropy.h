// src/data/entropy.h
#pragma once

#include "data/token_stream.h"

namespace penstock::data {

// -sum p ln p over the tokens' frequencies, in nats per token: the loss of the best model that ignores context. A model
// that has learnt anything about order is below it. 0 for an empty stream.
double UnigramEntropy(const TokenStream& stream);

}  // namespace penstock::data
