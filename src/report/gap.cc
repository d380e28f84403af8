#include "report/gap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "base/median.h"
#include "base/units.h"
#include "report/analysis/idle.h"
#include "report/analysis/names.h"
#include "report/analysis/step.h"
#include "report/bubbles.h"
#include "report/critical_path.h"

namespace penstock::report {
namespace {

using analysis::StepEvents;
using analysis::Transfer;
using schedule::Event;
using schedule::Key;
using schedule::Kind;
using schedule::Timeline;

constexpr size_t kMaxClassLines = 4, kMaxReasonLines = 5;

using ActionOf = std::pair<int32_t, Key>;  // rank, key: the same in both timelines, also when lists were reordered

struct ActionHash {
  size_t operator()(const ActionOf& a) const {
    return std::hash<Key>()(a.second) * 1000003u + static_cast<size_t>(a.first);
  }
};
template <typename Value>
using ByAction = std::unordered_map<ActionOf, Value, ActionHash>;

ActionOf ActionFor(const Event& e) {
  ActionOf a{e.rank, e.action.key};
  a.second.step = 0;  // the step an action belongs to is the event's
  return a;
}

// What the actions of one timeline took in its steps.
class Durations {
 public:
  Durations(const Timeline& t, const std::vector<StepEvents>& steps, size_t first, const schedule::StageGraph& graph) {
    for (size_t s = first; s < steps.size(); ++s) Add(t, steps[s], graph);
    for (auto& [action, seconds] : seconds_) median_[action] = Median(std::move(seconds));
    seconds_.clear();
    for (auto& [action, seconds] : arrivals_) arrival_[action] = Median(std::move(seconds));
    arrivals_.clear();
  }
  std::optional<double> Seconds(const ActionOf& action) const { return Find(median_, action); }
  // Of a receive: producer's end until arrival; without messages, of the consumer: producer's end until it began.
  std::optional<double> Arrival(const ActionOf& action) const { return Find(arrival_, action); }
  const ByAction<double>& all() const { return median_; }

 private:
  static std::optional<double> Find(const ByAction<double>& map, const ActionOf& action) {
    const auto it = map.find(action);
    return it == map.end() ? std::nullopt : std::optional(it->second);
  }

  void Add(const Timeline& t, const StepEvents& step, const schedule::StageGraph& graph) {
    const auto meetings = analysis::MeetingsOf(t, step);
    std::map<int32_t, double> over;  // collective -> when somebody who waited for it went on
    for (const auto& rank : analysis::FindGaps(t, step, graph))
      for (const analysis::Gap& g : rank) {
        if (g.blocker == analysis::Blocker::collective && g.cause >= 0) {
          double& end = over[g.cause];
          end = std::max(end, g.end);
        }
        if (g.blocker == analysis::Blocker::message && g.cause >= 0 && g.event >= 0 &&
            t.events[g.cause].action.key.kind != Kind::recv)
          arrivals_[ActionFor(t.events[g.event])].push_back(g.end - g.ready);
      }
    for (const auto& rank : step.by_rank)
      for (const int32_t i : rank) {
        const Event& e = t.events[i];
        if (e.action.key.kind == Kind::recv) continue;
        double seconds = analysis::WorkSeconds(e);
        if (e.action.key.kind == Kind::collective) {
          const auto waited = over.find(i);
          const double end = waited == over.end() ? e.end : std::max(e.end, waited->second);
          seconds = std::max(0.0, end - std::max(meetings[i].joined, analysis::WorkStart(e)));
        }
        seconds_[ActionFor(e)].push_back(seconds);
      }
    for (const Transfer& transfer : analysis::TransfersOf(t, step, graph)) {
      const ActionOf action = ActionFor(t.events[transfer.recv]);
      if (transfer.observed) arrivals_[action].push_back(std::max(0.0, transfer.arrival - transfer.ready));
      seconds_[action].push_back(transfer.observed ? std::max(0.0, transfer.arrival - transfer.ready) : 0.0);
    }
  }

  ByAction<std::vector<double>> seconds_, arrivals_;
  ByAction<double> median_, arrival_;
};

RankTimes TimesOf(const RankBubbles& rank) {
  RankTimes t;
  t.busy = rank.busy;
  for (int c = 0; c < kBubbleCauseCount; ++c) {
    switch (static_cast<BubbleCause>(c)) {
      case BubbleCause::imbalance:
      case BubbleCause::message:
      case BubbleCause::collective:
      case BubbleCause::offload:
        t.wait += rank.by_cause[c];
        break;
      case BubbleCause::warm_up:
      case BubbleCause::drain:
      case BubbleCause::host:
        t.other += rank.by_cause[c];
        break;
    }
  }
  return t;
}

std::string Change(double predicted, double difference) {
  const std::string amount = fmt::format("{}{}", difference < 0 ? "-" : "+", FormatSeconds(std::abs(difference)));
  if (predicted > 0 && std::abs(difference) <= 10 * predicted)
    return fmt::format("took {:.0f} % {} than predicted ({})", 100 * std::abs(difference) / predicted,
                       difference < 0 ? "less" : "longer", amount);
  return fmt::format("took {} {} than predicted", FormatSeconds(std::abs(difference)),
                     difference < 0 ? "less" : "longer");
}

class Comparison {
 public:
  Comparison(const Timeline& predicted, const Timeline& measured, const schedule::StageGraph& graph)
      : p_(predicted),
        m_(measured),
        graph_(graph),
        p_steps_(analysis::StepsOf(predicted)),
        m_steps_(analysis::StepsOf(measured)) {}

  Gap Run() {
    if (p_steps_.empty() || m_steps_.empty()) return {};
    const StepEvents& predicted = p_steps_[analysis::TypicalStep(p_steps_, false)];
    const StepEvents& measured = m_steps_[analysis::TypicalStep(m_steps_, true)];
    const size_t first = m_steps_.size() > 1 ? 1 : 0;
    gap_.measured_steps = static_cast<int64_t>(m_steps_.size() - first);
    gap_.step = measured.step;
    gap_.predicted_step = predicted.length();
    gap_.measured_step = measured.length();
    p_times_.emplace(p_, p_steps_, 0, graph_);
    m_times_.emplace(m_, m_steps_, first, graph_);
    Classes();
    Ranks();
    Links(predicted, measured);
    Reasons();
    return std::move(gap_);
  }

 private:
  void Classes() {
    std::map<std::string, ClassGap> classes;
    for (const auto& [action, seconds] : m_times_->all()) {
      const auto predicted = p_times_->Seconds(action);
      if (!predicted) ++gap_.unmatched;
      ClassGap& c = classes[analysis::ClassName(action.second)];
      ++c.count;
      const bool receive = action.second.kind == Kind::recv;
      // A transfer counts where both know it.
      if (receive && (!p_times_->Arrival(action) || !m_times_->Arrival(action))) continue;
      c.measured += receive ? *m_times_->Arrival(action) : seconds;
      c.predicted += receive ? *p_times_->Arrival(action) : predicted.value_or(0);
    }
    for (auto& [name, c] : classes) {
      c.name = name;
      gap_.classes.push_back(c);
    }
    std::stable_sort(gap_.classes.begin(), gap_.classes.end(), [](const ClassGap& a, const ClassGap& b) {
      return std::abs(a.difference()) > std::abs(b.difference());
    });
  }

  void Ranks() {
    const Timeline predicted = TypicalStepOf(p_, false), measured = TypicalStepOf(m_, true);
    const Bubbles pb = FindBubbles(predicted, graph_), mb = FindBubbles(measured, graph_);
    gap_.ranks.resize(std::max(pb.ranks.size(), mb.ranks.size()));
    for (size_t r = 0; r < gap_.ranks.size(); ++r) {
      RankGap& gap = gap_.ranks[r];
      if (r < pb.ranks.size()) gap.predicted = TimesOf(pb.ranks[r]);
      if (r < mb.ranks.size()) gap.measured = TimesOf(mb.ranks[r]);
      if (r >= mb.ranks.size()) continue;
      for (const auto& [peer, seconds] : mb.ranks[r].by_peer) {
        double predicted_wait = 0;
        if (r < pb.ranks.size())
          if (const auto it = pb.ranks[r].by_peer.find(peer); it != pb.ranks[r].by_peer.end())
            predicted_wait = it->second;
        if (seconds - predicted_wait <= gap.waited_longer) continue;
        gap.waited_longer = seconds - predicted_wait;
        gap.waited_for = peer;
      }
    }
  }

  void Links(const StepEvents& predicted, const StepEvents& measured) {
    std::map<std::pair<int32_t, int32_t>, LinkGap> links;
    std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>> promised;  // messages, bytes
    for (const Transfer& t : analysis::TransfersOf(p_, predicted, graph_)) {
      auto& [messages, bytes] = promised[{t.from, t.to}];
      ++messages;
      bytes += std::max(p_.events[t.send].bytes, p_.events[t.recv].bytes);
    }
    for (const Transfer& t : analysis::TransfersOf(m_, measured, graph_)) {
      LinkGap& link = links[{t.from, t.to}];
      ++link.messages;
      link.bytes += std::max(m_.events[t.send].bytes, m_.events[t.recv].bytes);
      const ActionOf action = ActionFor(m_.events[t.recv]);
      const auto p = p_times_->Arrival(action), m = m_times_->Arrival(action);
      if (!p || !m) continue;
      ++link.compared;
      link.predicted += *p;
      link.measured += *m;
    }
    for (const auto& [key, counts] : promised) {
      LinkGap& link = links[key];
      if (link.messages == 0) link.messages = counts.first;
      if (link.bytes == 0) link.bytes = counts.second;
    }
    for (auto& [key, link] : links) {
      link.from = key.first;
      link.to = key.second;
      gap_.links.push_back(link);
    }
  }

  struct Group {
    double measured = 0, predicted = 0;
    int64_t count = 0;
  };

  // How much of a piece of the host its rank spent in sends.
  double InSends(const PathPiece& piece) {
    if (sends_.empty()) {
      sends_.resize(m_.num_ranks);
      for (const StepEvents& step : m_steps_)
        if (step.step == gap_.step)
          for (int32_t r = 0; r < m_.num_ranks; ++r)
            for (const int32_t i : step.by_rank[r])
              if (m_.events[i].action.key.kind == Kind::send) sends_[r].push_back(i);  // ascending by start
    }
    const auto& sends = sends_[piece.rank];
    auto it = std::lower_bound(sends.begin(), sends.end(), piece.start,
                               [&](int32_t i, double time) { return m_.events[i].end < time; });
    double seconds = 0;
    for (; it != sends.end() && m_.events[*it].start < piece.end; ++it)
      seconds += std::max(0.0, std::min(piece.end, m_.events[*it].end) - std::max(piece.start, m_.events[*it].start));
    return seconds;
  }

  void Reasons() {
    std::map<std::string, Group> groups;
    double predicted_path = 0;
    for (const PathPiece& piece : CriticalPath(m_, gap_.step, graph_)) {
      std::string what;
      double predicted = 0;
      switch (piece.kind) {
        case PathKind::work: {
          const Event& e = m_.events[piece.event];
          const double whole = analysis::WorkSeconds(e);
          predicted =
              p_times_->Seconds(ActionFor(e)).value_or(0) * (whole > 0 ? std::min(1.0, piece.seconds() / whole) : 1);
          what = schedule::IsComputeKind(e.action.key.kind)
                     ? fmt::format("{} of stage {} on rank {}", analysis::ClassName(e.action.key),
                                   e.action.key.unit.stage, piece.rank)
                     : fmt::format("{} on rank {}", analysis::ClassName(e.action.key), piece.rank);
          break;
        }
        case PathKind::message: {
          const bool receive = piece.event >= 0 && m_.events[piece.event].action.key.kind == Kind::recv;
          const int32_t known = receive ? piece.event : piece.before;
          if (known >= 0) predicted = p_times_->Arrival(ActionFor(m_.events[known])).value_or(0);
          what = fmt::format("messages from rank {} to rank {}", piece.peer, piece.rank);
          break;
        }
        case PathKind::collective:
        case PathKind::copy:
          if (piece.event >= 0) {
            const Event& e = m_.events[piece.event];
            predicted = p_times_->Seconds(ActionFor(e)).value_or(0);
            what = fmt::format("{} on rank {}", analysis::ClassName(e.action.key), piece.rank);
          } else {
            what = fmt::format("{} on rank {}", Name(piece.kind), piece.rank);
          }
          break;
        case PathKind::host:
          what = InSends(piece) >= piece.seconds() / 2
                     ? fmt::format("the host of rank {} handing over messages", piece.rank)
                     : fmt::format("the host of rank {} between actions", piece.rank);
          break;
      }
      Group& g = groups[what];
      g.measured += piece.seconds();
      g.predicted += predicted;
      ++g.count;
      predicted_path += predicted;
    }
    const double negligible = 1e-6 * std::max(gap_.measured_step, gap_.predicted_step);
    double small = 0;
    for (const auto& [what, g] : groups) {
      const double difference = g.measured - g.predicted;
      if (std::abs(difference) <= negligible) {
        small += difference;
        continue;
      }
      gap_.reasons.push_back({fmt::format("{} {}", what, Change(g.predicted, difference)), difference});
    }
    if (small != 0) gap_.reasons.push_back({"differences below a millionth of the step", small});
    std::stable_sort(gap_.reasons.begin(), gap_.reasons.end(),
                     [](const GapReason& a, const GapReason& b) { return std::abs(a.seconds) > std::abs(b.seconds); });
    gap_.other_path = predicted_path - gap_.predicted_step;
  }

  const Timeline &p_, &m_;
  const schedule::StageGraph& graph_;
  std::vector<StepEvents> p_steps_, m_steps_;
  std::optional<Durations> p_times_, m_times_;
  std::vector<std::vector<int32_t>> sends_;  // [rank] of the step that is explained
  Gap gap_;
};

std::string Signed(double seconds) {
  return fmt::format("{}{}", seconds < 0 ? "-" : "+", FormatSeconds(std::abs(seconds)));
}

}  // namespace

double Gap::relative_error() const { return measured_step > 0 ? (predicted_step - measured_step) / measured_step : 0; }

std::string Gap::ToText() const {
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  line(fmt::format("step       predicted {}, measured {} (step {}{}): {}, the prediction is {:.1f} % {}",
                   FormatSeconds(predicted_step), FormatSeconds(measured_step), step + 1,
                   measured_steps > 1 ? fmt::format(", the median of {}", measured_steps) : std::string(),
                   Signed(difference()), 100 * std::abs(relative_error()),
                   relative_error() < 0 ? "too short" : "too long"));
  if (unmatched > 0)
    line(fmt::format("           {} measured actions have no predicted one: the prediction is of another schedule",
                     unmatched));
  out += WhyText();
  line("work       of all ranks in a step");
  for (size_t i = 0; i < std::min(classes.size(), kMaxClassLines); ++i) {
    const ClassGap& c = classes[i];
    line(fmt::format("  {:<24} {:>6} times  predicted {:>9}  measured {:>9}  {}", c.name, c.count,
                     FormatSeconds(c.predicted), FormatSeconds(c.measured), Signed(c.difference())));
  }
  return out;
}

std::string Gap::WhyText() const {
  const double negligible = 1e-6 * std::max(measured_step, predicted_step);
  if (reasons.empty() && std::abs(other_path) <= negligible) return "";
  std::string out = "why        along the critical path of the measured step\n";
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  double shown = 0;
  for (size_t i = 0; i < std::min(reasons.size(), kMaxReasonLines); ++i) {
    line(fmt::format("  {:>10}  {}", Signed(reasons[i].seconds), reasons[i].text));
    shown += reasons[i].seconds;
  }
  if (reasons.size() > kMaxReasonLines)
    line(fmt::format("  {:>10}  {} smaller differences", Signed(difference() - other_path - shown),
                     reasons.size() - kMaxReasonLines));
  if (std::abs(other_path) > negligible)
    line(fmt::format("  {:>10}  not explained: in the prediction another path was the longest", Signed(other_path)));
  size_t rank = 0;
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].waited_longer > ranks[rank].waited_longer) rank = r;
  if (rank < ranks.size() && ranks[rank].waited_for >= 0 && ranks[rank].waited_longer > negligible)
    line(fmt::format("waiting    rank {} waited {} longer for rank {} than predicted", rank,
                     FormatSeconds(ranks[rank].waited_longer), ranks[rank].waited_for));
  return out;
}

std::string Gap::ToJson() const {
  using Json = nlohmann::ordered_json;
  Json j = {{"predicted_step", predicted_step},
            {"measured_step", measured_step},
            {"relative_error", relative_error()},
            {"measured_steps", measured_steps},
            {"step", step + 1},
            {"other_path", other_path},
            {"unmatched_actions", unmatched}};
  for (const char* list : {"reasons", "classes", "ranks", "links"}) j[list] = Json::array();
  for (const GapReason& r : reasons) j["reasons"].push_back({{"seconds", r.seconds}, {"text", r.text}});
  for (const ClassGap& c : classes)
    j["classes"].push_back({{"name", c.name},
                            {"count", c.count},
                            {"predicted", c.predicted},
                            {"measured", c.measured},
                            {"difference", c.difference()}});
  const auto times = [](const RankTimes& t) { return Json{{"busy", t.busy}, {"wait", t.wait}, {"other", t.other}}; };
  for (const RankGap& r : ranks) {
    Json rank = {{"predicted", times(r.predicted)}, {"measured", times(r.measured)}};
    if (r.waited_for >= 0) {
      rank["waited_for"] = r.waited_for;
      rank["waited_longer"] = r.waited_longer;
    }
    j["ranks"].push_back(std::move(rank));
  }
  for (const LinkGap& l : links)
    j["links"].push_back({{"from", l.from},
                          {"to", l.to},
                          {"messages", l.messages},
                          {"bytes", l.bytes},
                          {"compared", l.compared},
                          {"predicted", l.predicted},
                          {"measured", l.measured}});
  return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Gap CompareTimelines(const Timeline& predicted, const Timeline& measured, const schedule::StageGraph& graph) {
  return Comparison(predicted, measured, graph).Run();
}

Timeline TypicalStepOf(const Timeline& timeline, bool measured) {
  Timeline one;
  one.title = timeline.title;
  one.num_ranks = timeline.num_ranks;
  const auto steps = analysis::StepsOf(timeline);
  if (steps.empty()) return one;
  const StepEvents& step = steps[analysis::TypicalStep(steps, measured)];
  for (const auto& rank : step.by_rank)
    for (const int32_t i : rank) {
      Event e = timeline.events[i];
      e.start -= step.start;
      e.end -= step.start;
      one.events.push_back(e);
    }
  // What was alive when the step began is alive at its start.
  std::map<std::tuple<int32_t, BufferClass, Tier>, schedule::MemoryEvent> before;
  for (schedule::MemoryEvent e : timeline.memory) {
    if (e.time > step.end) continue;
    if (e.time <= step.start) {
      auto [it, added] = before.try_emplace({e.rank, e.buffer_class, e.tier}, e);
      if (!added && e.time >= it->second.time) it->second = e;
      continue;
    }
    e.time -= step.start;
    one.memory.push_back(e);
  }
  for (auto& [key, e] : before) {
    e.time = 0;
    one.memory.push_back(e);
  }
  std::stable_sort(one.memory.begin(), one.memory.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
  return one;
}

}  // namespace penstock::report
