#include "simulate/stuck.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/operators.h"

namespace penstock::simulate {

using schedule::Action;
using schedule::Kind;

namespace {
constexpr size_t kMaxBlockedNamed = 8;
}  // namespace

void ThrowStuck(const schedule::Schedule& schedule, const ActionGraph& graph, const std::vector<bool>& done) {
  const std::vector<bool> ended = graph.Ended(done);
  throw UserError("schedule '{}' does not finish: {} of {} actions never end{}", schedule.name,
                  std::count(ended.begin(), ended.begin() + graph.num_actions(), false), graph.num_actions(),
                  graph.DescribeBlocked(done, kMaxBlockedNamed));
}

Action MessageOf(const Action& action) {
  if (action.key.kind == Kind::send) return action;
  Action send;
  send.key.kind = Kind::send;
  send.key.op =
      schedule::FindOp(action.key.kind == Kind::forward ? schedule::ops::kActivation : schedule::ops::kGradient);
  send.key.unit = action.key.unit;
  send.key.micro_batch = action.key.micro_batch;
  send.stream = schedule::Stream::send_channel;
  return send;
}

}  // namespace penstock::simulate
