#include "runtime/executor.h"

#include "base/error.h"
#include "memory/accounting.h"
#include "runtime/tags.h"
#include "schedule/operators.h"

namespace penstock::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using schedule::Access;
using schedule::Action;
using schedule::Kind;

double Seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

int64_t MessageBytes(const Buffer* buffer) {
  int64_t bytes = 0;
  if (buffer != nullptr)
    for (const at::Tensor& t : buffer->tensors)
      if (t.defined()) bytes += static_cast<int64_t>(t.nbytes());
  return bytes;
}

// What the counting allocator has for this rank, class by class; only what changed since the last event.
void RecordMemory(int rank, double time, std::vector<schedule::MemoryEvent>& events) {
  const memory::Usage usage = memory::UsageOf(rank);
  for (int c = 0; c < kBufferClassCount; ++c) {
    // memory's classes are base's with `other` before them: what nobody labelled is an activation here.
    int64_t live = usage.live_by_class[c + 1];
    if (static_cast<BufferClass>(c) == BufferClass::activation)
      live += usage.live_by_class[static_cast<size_t>(memory::BufferClass::other)];
    int64_t last = -1;
    for (auto it = events.rbegin(); it != events.rend() && it != events.rbegin() + 4 * kBufferClassCount; ++it)
      if (it->buffer_class == static_cast<BufferClass>(c)) {
        last = it->live_bytes;
        break;
      }
    if (live == last || (last < 0 && live == 0)) continue;
    events.push_back({.rank = rank,
                      .time = time,
                      .buffer_class = static_cast<BufferClass>(c),
                      .tier = Tier::device,
                      .live_bytes = live});
  }
}

}  // namespace

const nn::MicroBatchInputs& ExecutionContext::Inputs(int micro_batch) {
  auto it = inputs.find(micro_batch);
  if (it == inputs.end()) it = inputs.emplace(micro_batch, binding.materialize(micro_batch)).first;
  return it->second;
}

Executor::Executor(const Job& job, comm::Communicator& communicator, RankState& state, ExecutorSeams seams)
    : job_(job), communicator_(communicator), state_(state), seams_(std::move(seams)) {
  communicator_.SetTagNamer(&NameOfTag);
}

const Executor::Prepared& Executor::Prepare(const schedule::Schedule& s) {
  const auto found = prepared_.find(&s);
  if (found != prepared_.end()) return found->second;
  PENSTOCK_CHECK_EQ(s.num_ranks(), communicator_.size());
  Prepared p;
  for (size_t g = 0; g < s.groups.size(); ++g)
    p.groups.push_back(communicator_.CreateGroup({s.groups[g].begin(), s.groups[g].end()}, fmt::format("group {}", g)));
  const int rank = communicator_.rank();
  const auto& list = s.ranks[rank];
  p.effects.resize(list.size());
  for (size_t i = 0; i < list.size(); ++i) schedule::AppendEffects(s, rank, list[i], p.effects[i]);

  for (int r = 0; r < s.num_ranks(); ++r) {
    for (size_t i = 0; i < s.ranks[r].size(); ++i) {
      const schedule::EdgeRange range = s.ranks[r][i].extra_edges;
      for (uint32_t e = range.first; e < range.first + range.count; ++e) {
        const schedule::ActionRef source = s.edges[e];
        // Inside a rank program order is enough: compute is synchronous, and what is in flight settles by its buffers.
        if (source.rank == r || (source.rank != rank && r != rank)) continue;
        const comm::Group pair =
            communicator_.CreateGroup({std::min(r, source.rank), std::max(r, source.rank)}, fmt::format("edge {}", e));
        if (source.rank == rank) p.signals_after[source.index].push_back(pair);
        if (r == rank) p.waits_before[static_cast<int>(i)].push_back(pair);
      }
    }
  }

  for (const auto& [name, op] : Registry<schedule::Operator>::All()) {
    const schedule::OpId id = schedule::FindOp(name);
    if (p.handlers.size() <= id) p.handlers.resize(id + 1, nullptr);
    if (Registry<OperatorHandler>::Has(name)) p.handlers[id] = Registry<OperatorHandler>::Find(name).run;
  }
  return prepared_.emplace(&s, std::move(p)).first->second;
}

void Executor::Dispatch(ExecutionContext& context, const Prepared& prepared, const Action& action) {
  switch (action.key.kind) {
    case Kind::forward:
      return RunForward(context, action);
    case Kind::recompute:
      return RunRecompute(context, action);
    case Kind::backward:
      return RunBackward(context, action, /*defer=*/false);
    case Kind::backward_input:
      return RunBackward(context, action, /*defer=*/true);
    case Kind::backward_weight:
      return RunBackwardWeight(context, action);
    case Kind::update:
      return RunUpdate(context, action);
    case Kind::check:
    case Kind::task:
    case Kind::send:
    case Kind::recv:
    case Kind::collective:
    case Kind::copy: {
      const auto handler = action.key.op < prepared.handlers.size() ? prepared.handlers[action.key.op] : nullptr;
      PENSTOCK_CHECK(handler != nullptr, "operator '{}' has no handler", schedule::OpName(action.key.op));
      return handler(context, action);
    }
  }
}

StepResult Executor::RunStep(const schedule::Schedule& s, const StepBinding& binding, Record* record) {
  const Prepared& prepared = Prepare(s);
  PENSTOCK_CHECK_EQ(static_cast<int>(binding.micro_batches.size()), s.num_micro_batches());
  const int rank = communicator_.rank();
  StepResult result;
  std::vector<std::optional<bool>> predicates;
  ExecutionContext context{job_,   communicator_, state_, s, binding, buffers_, prepared.groups,
                           result, predicates,    clock_, {}};
  const auto& list = s.ranks[rank];
  const Clock::time_point step_start = seams_.time->Now();
  std::unordered_map<schedule::BufferId, size_t> open_receives;  // their events end when somebody waited
  std::vector<schedule::Event>* events = record == nullptr ? nullptr : &record->events;
  const Clock::time_point origin = record == nullptr ? Clock::time_point{} : record->origin;
  clock_.Enable(record != nullptr && !seams_.run);
  if (record != nullptr) RecordMemory(rank, Seconds(origin, step_start), record->memory);

  for (size_t i = 0; i < list.size(); ++i) {
    const Action& action = list[i];
    communicator_.SetCurrent(schedule::ToString(action.key));
    const Clock::time_point start = seams_.time->Now();
    if (const auto waits = prepared.waits_before.find(static_cast<int>(i)); waits != prepared.waits_before.end())
      for (const comm::Group& pair : waits->second) communicator_.Barrier(pair, TagOf({}, binding.step))->Wait();
    for (const schedule::Effect& effect : prepared.effects[i]) {
      if (effect.access == Access::allocate) continue;
      buffers_.WaitFor(effect.buffer);
      if (events == nullptr) continue;
      if (const auto open = open_receives.find(effect.buffer); open != open_receives.end()) {
        (*events)[open->second].end = Seconds(origin, seams_.time->Now());
        (*events)[open->second].bytes = MessageBytes(buffers_.Find(effect.buffer));
        open_receives.erase(open);
      }
    }
    const Clock::time_point ready = seams_.time->Now();
    int64_t bytes = 0;
    if (events != nullptr && action.key.kind == Kind::send)
      bytes = MessageBytes(buffers_.Find(prepared.effects[i][0].buffer));

    // A guarded action whose predicate is false still frees what it would have freed.
    PENSTOCK_CHECK(action.guard < 0 || (action.guard < static_cast<int>(predicates.size()) && predicates[action.guard]),
                   "'{}' is guarded by a predicate that no check has set", schedule::ToString(action));
    const bool runs = action.guard < 0 || *predicates[action.guard];
    const bool timed = clock_.on() && runs && IsComputeKind(action.key.kind);
    if (timed)
      clock_.BeginAction(action.key.kind, action.key.micro_batch,
                         binding.micro_batches.at(static_cast<size_t>(action.key.micro_batch)).samples);
    if (runs && seams_.run) {
      seams_.run(context, action, prepared.effects[i]);
    } else if (runs) {
      Dispatch(context, prepared, action);
    }
    if (runs && job_.serial)
      for (const schedule::Effect& effect : prepared.effects[i]) buffers_.WaitFor(effect.buffer);
    for (const schedule::Effect& effect : prepared.effects[i])
      if (effect.access == Access::free) buffers_.Free(effect.buffer);
    if (const auto signals = prepared.signals_after.find(static_cast<int>(i)); signals != prepared.signals_after.end())
      for (const comm::Group& pair : signals->second) communicator_.Barrier(pair, TagOf({}, binding.step));

    if (events != nullptr) {
      schedule::Event event;
      event.action = action;
      event.rank = rank;
      event.index = static_cast<int32_t>(i);
      event.step = static_cast<int32_t>(binding.step);
      event.start = Seconds(origin, start);
      event.end = Seconds(origin, seams_.time->Now());
      event.waited = Seconds(start, ready);
      event.bytes = bytes;
      event.provenance = seams_.provenance;
      if (action.key.kind == Kind::recv) open_receives.emplace(prepared.effects[i][0].buffer, events->size());
      events->push_back(event);
      if (timed) clock_.EndAction(event.end - event.start - event.waited);
      if (!seams_.run) RecordMemory(rank, event.end, record->memory);
    }
  }
  buffers_.WaitForAll();
  buffers_.EndStep();
  communicator_.SetCurrent("between steps");
  result.seconds = Seconds(step_start, seams_.time->Now());
  return result;
}

}  // namespace penstock::runtime
