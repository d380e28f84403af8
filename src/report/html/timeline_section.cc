// The data of the canvas: columns of integers per timeline, decoded by timeline.js. Times are nanoseconds; starts are
// differences to the event before on the same rank.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "base/units.h"
#include "report/analysis/idle.h"
#include "report/analysis/names.h"
#include "report/analysis/step.h"
#include "report/colours.h"
#include "report/html/facts.h"
#include "report/html/markup.h"
#include "report/json_text.h"
#include "report/timeline_io.h"

namespace penstock::report::html {
namespace {

using schedule::Event;
using schedule::Kind;
using schedule::Timeline;

int64_t Nano(double seconds) { return static_cast<int64_t>(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5)); }

// Events of a class look alike: (kind, operator, provenance).
class Classes {
 public:
  int Of(const Event& e) {
    return ids_.try_emplace({e.action.key.kind, e.action.key.op, e.provenance}, static_cast<int>(ids_.size()))
        .first->second;
  }
  std::string Json() const {
    std::vector<std::string> list(ids_.size());
    for (const auto& [key, id] : ids_) {
      const auto& [kind, op, provenance] = key;
      schedule::Key k;
      k.kind = kind;
      k.op = op;
      list[id] = fmt::format("{{\"name\":{},\"kind\":\"{}\",\"colour\":\"{}\",\"mark\":\"{}\"}}",
                             JsonString(analysis::ClassName(k)), Name(kind), ColourOf(kind), Name(provenance));
    }
    std::string out = "[";
    for (size_t i = 0; i < list.size(); ++i) Add(out, "{}{}", i == 0 ? "" : ",", list[i]);
    return out + "]";
  }

 private:
  std::map<std::tuple<Kind, schedule::OpId, schedule::Provenance>, int> ids_;
};

// What of a timeline is drawn: all, or whole steps around the typical one, or the first ranks of that.
struct Selection {
  Timeline timeline;
  std::string note;  // what was cut; "" if nothing
};

Selection Select(const Side& side, int64_t limit) {
  Selection s;
  const Timeline& all = *side.timeline;
  s.timeline.title = all.title;
  s.timeline.num_ranks = all.num_ranks;
  if (static_cast<int64_t>(all.events.size()) <= limit) {
    s.timeline.events = all.events;
    return s;
  }
  std::map<int32_t, int64_t> per_step;
  for (const Event& e : all.events) ++per_step[e.step];
  const int32_t typical = side.typical.events.front().step;
  std::set<int32_t> kept;
  int64_t count = 0;
  const auto keep = [&](const std::pair<const int32_t, int64_t>& step) {
    if (count + step.second > limit) return false;
    kept.insert(step.first);
    count += step.second;
    return true;
  };
  const auto middle = per_step.find(typical);
  for (auto it = middle; it != per_step.end() && keep(*it);) ++it;
  for (auto it = middle; !kept.empty() && it != per_step.begin() && keep(*std::prev(it));) --it;
  int32_t ranks = all.num_ranks;
  if (kept.empty()) {
    kept.insert(typical);
    std::vector<int64_t> per_rank(all.num_ranks);
    for (const Event& e : side.typical.events) ++per_rank[e.rank];
    ranks = 0;
    while (ranks < all.num_ranks && count + per_rank[ranks] <= limit) count += per_rank[ranks++];
  }
  // One rank alone may be too much: then its first actions.
  int64_t taken = 0;
  for (const Event& e : all.events) {
    if (!kept.contains(e.step)) continue;
    if (ranks > 0 ? e.rank < ranks : (e.rank == 0 && taken < limit)) {
      s.timeline.events.push_back(e);
      ++taken;
    }
  }
  s.note = fmt::format(
      "The {} timeline is cut in this drawing: {} of its {} actions are shown ({} of {} steps, {} of {} ranks{}). "
      "The tables are of everything.",
      side.name, s.timeline.events.size(), all.events.size(), kept.size(), per_step.size(), std::max(1, ranks),
      all.num_ranks, ranks == 0 ? ", its first actions" : "");
  return s;
}

class Columns {
 public:
  void Push(size_t column, int64_t value) {
    if (column >= text_.size()) text_.resize(column + 1);
    if (!text_[column].empty()) text_[column] += ',';
    Add(text_[column], "{}", value);
  }
  std::string Json(const std::vector<std::string_view>& names) const {
    std::string out = "{";
    for (size_t i = 0; i < names.size(); ++i)
      Add(out, "{}\"{}\":[{}]", i == 0 ? "" : ",", names[i], i < text_.size() ? std::string_view(text_[i]) : "");
    return out + "}";
  }

 private:
  std::vector<std::string> text_;
};

std::string EventData(const Timeline& t, const std::vector<analysis::StepEvents>& steps,
                      const schedule::StageGraph& graph, double origin, bool measured, Classes& classes,
                      std::vector<bool>& kinds) {
  // A receive is posted long before its message comes; what is drawn of it is the transfer. Of a measured one that
  // nobody waited for it is not known when it came: only its end is drawn. Of a collective it is what follows the last
  // member's joining.
  std::vector<double> work(t.events.size());
  for (size_t i = 0; i < work.size(); ++i) work[i] = analysis::WorkStart(t.events[i]);
  for (const auto& step : steps) {
    for (const analysis::Transfer& transfer : analysis::TransfersOf(t, step, graph)) {
      const Event& recv = t.events[transfer.recv];
      work[transfer.recv] = measured && !transfer.observed
                                ? recv.end
                                : std::clamp(analysis::WorkStart(t.events[transfer.send]), recv.start, recv.end);
    }
    const auto meetings = analysis::MeetingsOf(t, step);
    for (size_t i = 0; i < meetings.size(); ++i)
      if (meetings[i].last_rank >= 0)
        work[i] = std::clamp(meetings[i].joined, work[i], std::max(work[i], t.events[i].end));
  }
  std::vector<std::vector<int32_t>> ranks(t.num_ranks);
  for (size_t i = 0; i < t.events.size(); ++i) ranks[t.events[i].rank].push_back(static_cast<int32_t>(i));
  Columns columns;
  for (auto& list : ranks) {
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) { return work[a] < work[b]; });
    columns.Push(0, static_cast<int64_t>(list.size()));
    int64_t before = 0;
    for (const int32_t i : list) {
      const Event& e = t.events[i];
      const schedule::Key& k = e.action.key;
      const int64_t start = Nano(work[i] - origin);
      columns.Push(1, start - before);
      before = start;
      columns.Push(2, std::max<int64_t>(0, Nano(e.end - work[i])));
      columns.Push(3, std::max<int64_t>(0, Nano(work[i] - e.start)));
      columns.Push(4, classes.Of(e));
      columns.Push(5, k.unit.stage);
      columns.Push(6, k.micro_batch);
      columns.Push(7, k.part);
      columns.Push(8, e.action.peer_or_group);
      columns.Push(9, e.bytes);
      columns.Push(10, e.action.stream == schedule::Stream::compute ? 1 : 0);
      kinds[static_cast<size_t>(k.kind)] = true;
    }
  }
  return columns.Json(
      {"count", "start", "length", "waited", "class", "stage", "micro_batch", "part", "peer", "bytes", "compute"});
}

std::string IdleData(const Bubbles& bubbles, int32_t num_ranks, double origin) {
  std::vector<std::vector<Bubble>> ranks(num_ranks);
  for (const Bubble& b : bubbles.spans) {
    auto& list = ranks[b.rank];
    // Pieces of one reason that follow each other are one.
    if (!list.empty() && list.back().cause == b.cause && list.back().peer == b.peer &&
        Nano(b.start - list.back().end) <= 0)
      list.back().end = b.end;
    else
      list.push_back(b);
  }
  Columns columns;
  for (const auto& list : ranks) {
    columns.Push(0, static_cast<int64_t>(list.size()));
    int64_t before = 0;
    for (const Bubble& b : list) {
      const int64_t start = Nano(b.start - origin);
      columns.Push(1, start - before);
      before = start;
      columns.Push(2, Nano(b.seconds()));
      columns.Push(3, static_cast<int64_t>(b.cause));
      columns.Push(4, b.peer);
    }
  }
  return columns.Json({"count", "start", "length", "cause", "peer"});
}

}  // namespace

std::string TimelineSection(const Facts& f) {
  if (f.main() == nullptr) return "";
  Classes classes;
  std::vector<bool> kinds(schedule::kKindCount);
  std::string notes, data = "{\"timelines\":[";
  const int64_t limit = kMaxHtmlEvents / (f.predicted && f.measured ? 2 : 1);
  bool first = true;
  for (const auto* side : {&f.predicted, &f.measured}) {
    if (!*side) continue;
    const Selection shown = Select(**side, limit);
    if (!shown.note.empty()) Add(notes, "<p class=\"warning\">{}</p>\n", Escape(shown.note));
    const auto steps = analysis::StepsOf(shown.timeline);
    const int32_t typical = (*side)->typical.events.front().step;
    double origin = 0;
    for (const auto& step : steps)
      if (step.step == typical) origin = step.start;
    Add(data, "{}{{\"name\":\"{}\",\"ranks\":{},\"steps\":[", first ? "" : ",\n", (*side)->name,
        shown.timeline.num_ranks);
    first = false;
    for (size_t i = 0; i < steps.size(); ++i)
      Add(data, "{}{{\"step\":{},\"start\":{},\"end\":{},\"typical\":{}}}", i == 0 ? "" : ",", steps[i].step + 1,
          Nano(steps[i].start - origin), Nano(steps[i].end - origin), steps[i].step == typical);
    Add(data, "],\"events\":{}",
        EventData(shown.timeline, steps, f.graph, origin, (*side)->name == "measured", classes, kinds));
    // Of the ranks that are shown: with a part of them missing, nobody knows what the others waited for.
    Add(data, ",\"idle\":{}}}",
        shown.note.empty() ? IdleData(FindBubbles(shown.timeline, f.graph), shown.timeline.num_ranks, origin)
                           : IdleData({}, shown.timeline.num_ranks, origin));
  }
  Add(data, "],\n\"classes\":{},\"causes\":[", classes.Json());
  for (int c = 0; c < kBubbleCauseCount; ++c)
    Add(data, "{}{{\"name\":\"{}\",\"colour\":\"{}\"}}", c == 0 ? "" : ",", kBubbleCauseNames[c],
        ColourOf(static_cast<BubbleCause>(c)));
  data += "]}";
  // Nothing in it ends the script element early: the only free text is class names, and those are escaped here.
  for (size_t at = data.find('<'); at != std::string::npos; at = data.find('<', at)) data.replace(at, 1, "\\u003c");

  std::string out = "<section id=\"timeline\"><h2>Timeline</h2>\n" + notes;
  out +=
      "<p class=\"hint\">Wheel to zoom, drag to move, double click for all; arrow keys, + and − with the keyboard. "
      "Boxes are computation, "
      "the thin line below them messages, collectives and copies; idle time is tinted by its cause.</p>\n"
      "<div class=\"toolbar\" id=\"tools\"></div>\n<div class=\"canvas-box\"><canvas id=\"plot\" tabindex=\"0\" "
      "role=\"img\" "
      "aria-label=\"Timeline of every rank; the tables below say the same in words\"></canvas><div id=\"tip\" "
      "role=\"status\"></div></div>\n"
      "<p class=\"legend\">";
  for (int k = 0; k < schedule::kKindCount; ++k)
    if (kinds[k])
      Add(out, "<span>{}{}</span> ", Swatch(ColourOf(static_cast<Kind>(k))), InWords(schedule::kKindNames[k]));
  std::array<bool, kBubbleCauseCount> idle{};
  for (const auto* side : {&f.predicted, &f.measured})
    if (*side)
      for (const Bubble& b : (*side)->bubbles.spans) idle[static_cast<size_t>(b.cause)] = true;
  for (int c = 0; c < kBubbleCauseCount; ++c)
    if (idle[c])
      Add(out, "<span class=\"tint\">{}idle: {}</span> ", Swatch(ColourOf(static_cast<BubbleCause>(c))),
          kBubbleCauseNames[c]);
  out +=
      "</p>\n<noscript><p class=\"warning\">The drawing needs scripts; everything else on this page does "
      "not.</p></noscript>\n";
  Add(out, "<script type=\"application/json\" id=\"data\">{}</script>\n</section>\n", data);
  return out;
}

}  // namespace penstock::report::html
