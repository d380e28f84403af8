// src/comm/remote/exchanges.h
//
// The two ways in which data moves; MakeExchange chooses.
#pragma once

#include <memory>

#include "comm/remote/exchange.h"

namespace penstock::comm {

// all_gather, all_gather_v, all_to_all_v, broadcast, barrier.
std::unique_ptr<Exchange> MakeGatherExchange(DataLink& link, int self, int size, const Post& post);
// all_reduce, reduce_scatter and their trees.
std::unique_ptr<Exchange> MakeReduceExchange(DataLink& link, int self, int size, const Post& post);

}  // namespace penstock::comm
