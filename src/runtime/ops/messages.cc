// Handlers of send and recv: boundary values and boundary gradients. The buffer the action's effect names is what is
// handed over; a received tensor is charged to the receiver.
#include "base/error.h"
#include "memory/accounting.h"
#include "runtime/executor.h"
#include "runtime/tags.h"
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::runtime {
namespace {

using schedule::Action;
using schedule::BufferId;
using schedule::Kind;

void Transfer(ExecutionContext& context, const Action& action, const BufferId& id) {
  const comm::Tag tag = TagOf(action.key, context.binding.step);
  if (action.key.kind == Kind::send) {
    context.communicator.Send(action.peer_or_group, tag, std::move(context.buffers.At(id).tensors));
    return;
  }
  Buffer& buffer = context.buffers.Allocate(id);
  buffer.works.push_back(context.communicator.Recv(action.peer_or_group, tag));
  const int rank = context.communicator.rank();
  buffer.on_ready = [rank](Buffer& b) {
    b.tensors = b.works[0]->TakeTensors();
    for (const at::Tensor& t : b.tensors)
      if (t.defined()) memory::TransferOwner(t, rank, memory::BufferClass::boundary);
  };
}

const RegisterHandler kActivation{{std::string(schedule::ops::kActivation), [](ExecutionContext& c, const Action& a) {
                                     Transfer(c, a, schedule::BoundaryValue(c.schedule, a.key.part, a.key.micro_batch));
                                   }}};

const RegisterHandler kGradient{{std::string(schedule::ops::kGradient), [](ExecutionContext& c, const Action& a) {
                                   Transfer(c, a,
                                            schedule::BoundaryGradient(c.schedule, a.key.part, a.key.micro_batch));
                                 }}};

}  // namespace
}  // namespace penstock::runtime
