// src/cost/fsdp_step.h
//
// The time of one fully sharded step of L equal layers, twice: the usual max-form, and the exact time of
// what the runtime does layer by layer.
//
// The step that both describe (one micro-batch; one in-order queue for collectives, or one for gathers and one for
// reductions with full duplex):
//   gather of layer v (v = 0 .. 2L-1: forward in order, backward reversed) is issued before the compute of layer v-1
//   and waits for the compute of v-2: at most two gathered layers at once
//   compute of v waits for its gather; the reduction of v (backward) is issued after its compute and waits for it
//
// Exact:    one queue     a + L max(a,f) + max(a,b) + (L-2) max(a+r,b) + max(r,b) + r     (L = 1: a + max(a,f) + b + r)
//           full duplex   a + L max(a,f) + b + (L-1) max(a,b,r) + r
//           no second gather (ZeRO-1/2: parameters gathered once, before their forward)
//                         a + f + (L-1) max(a,f) + b + (L-1) max(b,r) + r
// Max-form: L max(a,f) + L max(b, a+r)     full duplex: L max(a,b,r);     no second gather: L max(b,r)
// Always    max-form <= exact <= max-form + a + r      and both ends are reached.
//
// Where the max-form is not the step: it ignores the granularity of layers. What it leaves out is the first gather and
// the last reduction (a + r, the same for any L), so it is poor for few layers. Both assume equal layers, no
// optimizer, and compute that communication does not slow down.
#pragma once

#include <algorithm>

namespace penstock::cost {

// One layer. Time: Rational or double.
template <typename Time>
struct FsdpLayerTimes {
  Time gather = 0;    // a: all-gather of its parameters
  Time forward = 0;   // f
  Time backward = 0;  // b, with what is recomputed
  Time reduce = 0;    // r: reduce-scatter of its gradients (and what follows it on the same link)
};

struct FsdpOverlap {
  bool gathers_again = true;  // for the backward (ZeRO-3)
  bool full_duplex = false;   // gathers and reductions do not wait for each other
};

template <typename Time>
Time FsdpMaxForm(const FsdpLayerTimes<Time>& t, int layers, const FsdpOverlap& overlap) {
  Time backward = std::max(t.backward, t.reduce);
  if (overlap.gathers_again)
    backward = overlap.full_duplex ? std::max(backward, t.gather) : std::max<Time>(t.backward, t.gather + t.reduce);
  return Time(layers) * (std::max(t.gather, t.forward) + backward);
}

template <typename Time>
Time FsdpLayerwise(const FsdpLayerTimes<Time>& t, int layers, const FsdpOverlap& overlap) {
  const Time a = t.gather, f = t.forward, b = t.backward, r = t.reduce;
  if (!overlap.gathers_again)
    return a + f + Time(layers - 1) * std::max(a, f) + b + Time(layers - 1) * std::max(b, r) + r;
  const Time forward = a + Time(layers) * std::max(a, f);  // until the first backward can start
  if (overlap.full_duplex) return forward + b + Time(layers - 1) * std::max(std::max(a, b), r) + r;
  if (layers == 1) return forward + b + r;
  return forward + std::max(a, b) + Time(layers - 2) * std::max<Time>(a + r, b) + std::max(r, b) + r;
}

}  // namespace penstock::cost
