#include "report/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <map>
#include <tuple>

#include "report/json_text.h"
#include "report/timeline_io.h"
#include "schedule/action.h"

namespace penstock::report {
namespace {

using schedule::Event;
using schedule::Kind;
using schedule::Stream;
using schedule::Timeline;

class Trace {
 public:
  void Add(const Timeline& t) {
    origin_ = t.events.empty() ? 0 : t.events.front().start;
    for (const Event& e : t.events) origin_ = std::min(origin_, e.start);
    for (int32_t r = 0; r < t.num_ranks; ++r) {
      Meta("process_name", first_process_ + r, 0, fmt::format("{} rank {}", t.title, r));
      Begin();
      Append("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}}}}}",
             first_process_ + r);
    }
    for (const Event& e : t.events) Slice(e);
    Arrows(t);
    Counters(t);
    first_process_ += std::max(1, t.num_ranks);
    threads_.clear();
  }

  std::string Take() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + std::move(out_) + "\n]}\n"; }

 private:
  template <typename... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void Begin() {
    if (!out_.empty()) out_ += ",\n";
  }
  static std::string Micro(double seconds) { return fmt::format("{:.3f}", seconds * 1e6); }
  // Since the timeline began; what is older (memory that was alive before) stands at the beginning.
  std::string At(double time) const { return Micro(std::max(0.0, time - origin_)); }

  void Meta(std::string_view what, int process, int thread, std::string_view name) {
    Begin();
    Append("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what, process, thread,
           JsonString(name));
  }

  // Threads are numbered as they appear, the compute stream first.
  int ThreadOf(const Event& e) {
    const Stream stream = e.action.stream;
    const bool channel =
        stream == Stream::send_channel || stream == Stream::recv_channel || stream == Stream::group_queue;
    const int instance = channel ? e.action.peer_or_group : -1;
    const auto key = std::tuple(e.rank, stream, instance);
    const auto it = threads_.find(key);
    if (it != threads_.end()) return it->second;
    const int thread = stream == Stream::compute ? 0 : 1 + static_cast<int>(stream) * 100000 + instance + 1;
    threads_.emplace(key, thread);
    Meta("thread_name", first_process_ + e.rank, thread,
         channel ? fmt::format("{} {} {}", Name(stream),
                               stream == Stream::group_queue    ? "queue"
                               : stream == Stream::send_channel ? "to"
                                                                : "from",
                               instance)
                 : std::string(Name(stream)));
    return thread;
  }

  void Slice(const Event& e) {
    const int thread = ThreadOf(e);
    Begin();
    Append(
        "{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{\"step\":{},"
        "\"index\":{}",
        JsonString(ToString(e.action.key)), Name(e.action.key.kind), first_process_ + e.rank, thread, At(e.start),
        Micro(e.end - e.start), e.step, e.index);
    if (e.bytes > 0) Append(",\"bytes\":{}", e.bytes);
    Append(",\"provenance\":\"{}\"}}}}", Name(e.provenance));
    if (e.waited <= 0) return;
    Begin();
    Append(
        "{{\"ph\":\"X\",\"name\":\"wait\",\"cat\":\"wait\",\"cname\":\"grey\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{"
        "}}}",
        first_process_ + e.rank, thread, At(e.start), Micro(e.waited));
  }

  // The k-th send of a message and its k-th receive.
  void Arrows(const Timeline& t) {
    using Message = std::tuple<int32_t, int32_t, int32_t, schedule::Key>;  // step, from, to, key
    std::map<Message, std::deque<const Event*>> sends;
    const auto message = [](const Event& e, int32_t from, int32_t to) {
      schedule::Key key = e.action.key;
      key.kind = Kind::send;
      return Message(e.step, from, to, key);
    };
    for (const Event& e : t.events)
      if (e.action.key.kind == Kind::send) sends[message(e, e.rank, e.action.peer_or_group)].push_back(&e);
    for (const Event& e : t.events) {
      if (e.action.key.kind != Kind::recv) continue;
      const auto it = sends.find(message(e, e.action.peer_or_group, e.rank));
      if (it == sends.end() || it->second.empty()) continue;  // no arrow for what the timeline has only one side of
      const Event& send = *it->second.front();
      it->second.pop_front();
      ++arrows_;
      Begin();
      Append("{{\"ph\":\"s\",\"id\":{},\"name\":\"message\",\"cat\":\"message\",\"pid\":{},\"tid\":{},\"ts\":{}}}",
             arrows_, first_process_ + send.rank, ThreadOf(send), At((send.start + send.end) / 2));
      Begin();
      Append(
          "{{\"ph\":\"f\",\"bp\":\"e\",\"id\":{},\"name\":\"message\",\"cat\":\"message\",\"pid\":{},\"tid\":{},\"ts\":"
          "{}}}",
          arrows_, first_process_ + e.rank, ThreadOf(e), At((e.start + e.end) / 2));
    }
  }

  void Counters(const Timeline& t) {
    std::map<std::pair<int32_t, Tier>, std::array<int64_t, kBufferClassCount>> live;
    std::vector<const schedule::MemoryEvent*> events;
    for (const auto& e : t.memory) events.push_back(&e);
    std::stable_sort(events.begin(), events.end(), [](const auto* a, const auto* b) { return a->time < b->time; });
    for (const auto* e : events) {
      auto& bytes = live[{e->rank, e->tier}];
      bytes[static_cast<size_t>(e->buffer_class)] = e->live_bytes;
      Begin();
      Append("{{\"ph\":\"C\",\"name\":\"{} bytes\",\"pid\":{},\"ts\":{},\"args\":{{", penstock::Name(e->tier),
             first_process_ + e->rank, At(e->time));
      for (int c = 0; c < kBufferClassCount; ++c)
        Append("{}\"{}\":{}", c == 0 ? "" : ",", kBufferClassNames[c], bytes[c]);
      out_ += "}}";
    }
  }

  std::string out_;
  int first_process_ = 0;
  double origin_ = 0;  // first start of the timeline at hand
  int64_t arrows_ = 0;
  std::map<std::tuple<int32_t, Stream, int>, int> threads_;  // of the timeline at hand
};

}  // namespace

std::string ChromeTrace(const std::vector<const Timeline*>& timelines) {
  Trace trace;
  for (const Timeline* t : timelines) trace.Add(*t);
  return trace.Take();
}

}  // namespace penstock::report
