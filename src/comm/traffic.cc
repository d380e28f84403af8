#include "comm/traffic.h"

namespace penstock::comm {

std::string_view ToString(CommKind kind) {
  switch (kind) {
    case CommKind::send:
      return "send";
    case CommKind::all_reduce:
      return "all_reduce";
    case CommKind::all_reduce_tree:
      return "all_reduce_tree";
    case CommKind::reduce_scatter:
      return "reduce_scatter";
    case CommKind::reduce_scatter_tree:
      return "reduce_scatter_tree";
    case CommKind::all_gather:
      return "all_gather";
    case CommKind::all_gather_v:
      return "all_gather_v";
    case CommKind::all_to_all_v:
      return "all_to_all_v";
    case CommKind::broadcast:
      return "broadcast";
    case CommKind::barrier:
      return "barrier";
  }
  return "?";
}

Traffic TrafficCounters::Total() const {
  Traffic total;
  for (const Traffic& t : sent_) {
    total.messages += t.messages;
    total.bytes += t.bytes;
  }
  return total;
}

}  // namespace penstock::comm
