// src/base/link_model.h
//
// What links between ranks cost, as the emulated links (comm/emulated_links.h) ask it: filled from a cluster, from the
// costs of a schedule, or by a function.
// Threads: asked by every rank at once; const means safe. Errors: negative times are refused by whoever asks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock {

struct LinkSeconds {
  double latency = 0;   // from the end of the transfer until the receiver has it
  double transfer = 0;  // keeps the channel from one rank to the other busy
};

class LinkModel {
 public:
  virtual ~LinkModel() = default;
  // A message of `bytes` bytes; from != to.
  virtual LinkSeconds Message(int from, int to, int64_t bytes) const = 0;
  // A collective over `ranks` (ascending), from the moment the last one has come. `kind` as in comm/traffic.h
  // ("all_reduce"); `bytes` of the whole tensor, or of all members' parts together where lengths are free.
  virtual double Collective(const std::vector<int>& ranks, std::string_view kind, int64_t bytes) const = 0;
};

}  // namespace penstock
