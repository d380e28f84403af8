#include "runtime/emulate.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/error.h"
#include "comm/emulated_links.h"
#include "comm/thread_ranks.h"
#include "runtime/executor.h"
#include "runtime/tags.h"

namespace penstock::runtime {
namespace {

using Time = TimeSource::Time;
using schedule::Access;
using schedule::Action;
using schedule::Effect;
using schedule::Kind;
using schedule::Schedule;

bool Travels(Kind kind) { return kind == Kind::send || kind == Kind::recv || kind == Kind::collective; }

// Of what the costs do not declare: the zero-byte messages of edges between ranks.
class SignalLinks final : public LinkModel {
 public:
  SignalLinks(const Schedule& schedule, const schedule::ActionCosts<double>& costs)
      : schedule_(schedule), costs_(costs) {}
  LinkSeconds Message(int from, int to, int64_t) const override {
    Action send;
    send.key.kind = Kind::send;
    send.stream = schedule::Stream::send_channel;
    return {costs_.Latency(schedule_, from, to, send), 0};
  }
  double Collective(const std::vector<int>&, std::string_view, int64_t) const override { return 0; }

 private:
  const Schedule& schedule_;
  const schedule::ActionCosts<double>& costs_;
};

double ScaleOf(const Schedule& schedule, const schedule::ActionCosts<double>& costs, const EmulateOptions& options) {
  PENSTOCK_CHECK(options.time_scale >= 0 && options.shortest > 0, "a time scale of {}, {} s for the shortest action",
                 options.time_scale, options.shortest);
  if (options.time_scale > 0) return options.time_scale;
  double shortest = std::numeric_limits<double>::infinity();
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    for (const Action& action : schedule.ranks[rank]) {
      if (Travels(action.key.kind)) continue;
      const double seconds = costs.Duration(schedule, rank, action);
      if (seconds > 0) shortest = std::min(shortest, seconds);
    }
  }
  return std::isinf(shortest) ? 1 : options.shortest / shortest;
}

// Runs the actions of one rank.
class EmulatedRank {
 public:
  EmulatedRank(const schedule::ActionCosts<double>& costs, const EmulateOptions& options, double scale,
               comm::EmulatedLinks& links, TimeSource& time)
      : costs_(costs), options_(options), scale_(scale), links_(links), time_(time) {}

  void BeginStep() {
    thread_free_ = time_.Now();
    transfers_.clear();
  }

  void Run(ExecutionContext& context, const Action& action, const std::vector<Effect>& effects) {
    const Schedule& s = context.schedule;
    if (!Travels(action.key.kind)) Keep(costs_.Duration(s, links_.rank(), action));
    for (const Effect& effect : effects) {
      if (effect.access == Access::allocate) context.buffers.Allocate(effect.buffer);
      if (effect.access == Access::accumulate) context.buffers.Obtain(effect.buffer);
    }
    if (action.key.kind == Kind::check) {
      const auto predicate = static_cast<size_t>(action.key.part);
      if (context.predicates.size() <= predicate) context.predicates.resize(predicate + 1);
      context.predicates[predicate] = true;
    }
    if (Travels(action.key.kind)) Post(context, action, effects);
  }

  // Ends of what the rank posted in the order in which it did. After the step, when nothing is in flight.
  std::vector<Time> TransferEnds() const {
    std::vector<Time> ends;
    for (const auto& work : transfers_) ends.push_back(work->EndTime());
    return ends;
  }

 private:
  // The rank's thread works for so long.
  void Keep(double seconds) {
    thread_free_ = links_.waits() == waits_ ? std::max(thread_free_, links_.waited_until()) : time_.Now();
    waits_ = links_.waits();
    thread_free_ += Time::duration(static_cast<int64_t>(std::ceil(seconds * scale_ * 1e9)));
    if (seconds > 0) time_.SleepUntil(thread_free_);
  }

  void Post(ExecutionContext& context, const Action& action, const std::vector<Effect>& effects) {
    const Schedule& s = context.schedule;
    const comm::Tag tag = TagOf(action.key, context.binding.step);
    comm::WorkPtr work;
    if (action.key.kind == Kind::recv) {
      work = links_.Recv(action.peer_or_group, tag);
    } else {
      if (options_.links != nullptr) {
        links_.DeclareBytes(s.sizes.at(action.bytes).upper_bound);
      } else {
        const bool crosses = action.key.kind == Kind::send && action.peer_or_group != links_.rank();
        links_.DeclareSeconds(
            {.latency = crosses ? costs_.Latency(s, links_.rank(), action.peer_or_group, action) : 0.0,
             .transfer = costs_.Duration(s, links_.rank(), action)});
      }
      at::Tensor token = at::full({1}, 1.0f);
      work = action.key.kind == Kind::send ? links_.Send(action.peer_or_group, tag, {std::move(token)})
                                           : links_.AllReduceSum(context.groups[action.peer_or_group], tag, token);
    }
    transfers_.push_back(std::dynamic_pointer_cast<comm::TimedWork>(work));
    if (action.key.kind == Kind::send) return;  // buffered
    for (const Effect& effect : effects)
      if (effect.access == Access::allocate || effect.access == Access::accumulate)
        context.buffers.At(effect.buffer).works.push_back(work);
  }

  const schedule::ActionCosts<double>& costs_;
  const EmulateOptions& options_;
  const double scale_;
  comm::EmulatedLinks& links_;
  TimeSource& time_;
  Time thread_free_{};  // when the thread should have ended its last work
  int64_t waits_ = 0;   // of the links, then
  std::vector<std::shared_ptr<comm::TimedWork>> transfers_;
};

// All ranks go on at the same time, which each of them reaches: soon after the last one has come.
Time BeginTogether(comm::Communicator& communicator, TimeSource& time) {
  const comm::Tag tag{uint64_t{0xffff} << 48, 0};  // no operator's
  at::Tensor now = at::full({1}, static_cast<int64_t>(time.Now().time_since_epoch().count()), at::kLong);
  int64_t latest = 0;
  for (const at::Tensor& t : communicator.AllGatherV(communicator.world(), tag, now)->TakeTensors())
    latest = std::max(latest, *t.const_data_ptr<int64_t>());
  const Time begin = Time(Time::duration(latest)) + std::chrono::milliseconds(5);
  time.SleepUntil(begin);
  return begin;
}

}  // namespace

schedule::Timeline EmulateSteps(const Schedule& schedule, const schedule::ActionCosts<double>& costs,
                                const EmulateOptions& options) {
  const int ranks = schedule.num_ranks();
  const double scale = ScaleOf(schedule, costs, options);
  const SignalLinks signals(schedule, costs);
  const LinkModel& model = options.links == nullptr ? signals : *options.links;
  Job job;
  job.serial = options.serial;
  std::vector<std::vector<schedule::Event>> events(ranks);

  comm::RunThreadRanks(ranks, {.deadline = options.deadline}, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    VirtualTime virtual_time;
    TimeSource& time = options.virtual_time ? virtual_time : SteadyTime();
    comm::EmulatedLinks links(communicator, model, time, scale);
    EmulatedRank emulated(costs, options, scale, links, time);
    RankState state;
    Executor executor(job, links, state,
                      {.run = [&](ExecutionContext& c, const Action& a,
                                  const std::vector<Effect>& effects) { emulated.Run(c, a, effects); },
                       .time = &time,
                       .provenance = schedule::Provenance::emulated});
    Time origin{};
    for (int step = 0; step < options.steps; ++step) {
      StepBinding binding;
      binding.step = step;
      binding.micro_batches.resize(schedule.num_micro_batches());
      // Clocks of their own all stand at the end of their rank's last step; the latest is where the next one begins.
      const Time begin = BeginTogether(communicator, time);
      if (step == 0) origin = begin;
      emulated.BeginStep();
      Executor::Record own;
      own.origin = origin;
      executor.RunStep(schedule, binding, &own);
      const std::vector<Time> ends = emulated.TransferEnds();
      size_t next = 0;
      for (schedule::Event& event : own.events) {
        if (Travels(event.action.key.kind))
          event.end =
              std::max(event.start + event.waited, std::chrono::duration<double>(ends[next++] - origin).count());
        event.start /= scale;
        event.end /= scale;
        event.waited /= scale;
        event.bytes = schedule.sizes.at(event.action.bytes).upper_bound;
        events[rank].push_back(event);
      }
    }
  });

  schedule::Timeline timeline;
  timeline.title = "emulated";
  timeline.num_ranks = ranks;
  for (const auto& list : events) timeline.events.insert(timeline.events.end(), list.begin(), list.end());
  return timeline;
}

double MakespanOf(const schedule::Timeline& timeline, int step) {
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (const schedule::Event& event : timeline.events) {
    if (event.step != step) continue;
    first = std::min(first, event.start);
    last = std::max(last, event.end);
  }
  return last < first ? 0 : last - first;
}

}  // namespace penstock::runtime
