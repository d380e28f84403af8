#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "report/colours.h"
#include "report/html/facts.h"
#include "report/html/markup.h"

namespace penstock::report::html {
namespace {

constexpr size_t kMaxBars = 32, kMaxShares = 8;

// The ranks with the largest bubbles, in order.
std::vector<size_t> Shown(const std::vector<RankBubbles>& ranks) {
  std::vector<size_t> rows(ranks.size());
  std::iota(rows.begin(), rows.end(), 0);
  if (rows.size() > kMaxBars) {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return ranks[a].total() > ranks[b].total(); });
    rows.resize(kMaxBars);
    std::sort(rows.begin(), rows.end());
  }
  return rows;
}

std::string Bars(const Side& side, double full) {
  std::string out = fmt::format("<div class=\"panel\"><h3>{}: bubble {} of the ranks' time</h3>\n", Escape(side.name),
                                Percent(side.bubbles.fraction()));
  const auto rows = Shown(side.bubbles.ranks);
  for (const size_t r : rows) {
    const RankBubbles& rank = side.bubbles.ranks[r];
    Add(out, "<div class=\"bar\"><span class=\"name\">rank {}</span><span class=\"track\">", r);
    const auto part = [&](std::string_view name, std::string_view colour, double seconds) {
      if (seconds <= 0 || full <= 0) return;
      Add(out, "<span style=\"width:{:.3f}%;background:{}\" title=\"{} {}\"></span>", 100 * seconds / full, colour,
          name, FormatSeconds(seconds));
    };
    for (int c = 0; c < kBubbleCauseCount; ++c)
      part(kBubbleCauseNames[c], ColourOf(static_cast<BubbleCause>(c)), rank.by_cause[c]);
    Add(out, "</span><span class=\"sum\">{}</span></div>\n", FormatSeconds(rank.total()));
  }
  if (rows.size() < side.bubbles.ranks.size())
    Add(out, "<p class=\"note\">Bars of the {} ranks with the largest bubbles; the table has all {}.</p>\n",
        rows.size(), side.bubbles.ranks.size());
  return out + "</div>\n";
}

std::string Seconds(double seconds) { return seconds > 0 ? FormatSeconds(seconds) : "<span class=\"zero\">0</span>"; }

Table TableOf(const Side& side) {
  Table t;
  t.caption = fmt::format("Bubble seconds by cause, {}, one step of {}", side.name, FormatSeconds(side.step_seconds));
  t.head = {"rank", "busy"};
  for (const auto name : kBubbleCauseNames) t.head.emplace_back(name);
  t.head.insert(t.head.end(), {"bubble", "share", "<waited most for (all waits together)"});
  for (size_t r = 0; r < side.bubbles.ranks.size(); ++r) {
    const RankBubbles& rank = side.bubbles.ranks[r];
    std::vector<std::string> row = {fmt::format("{}", r), Seconds(rank.busy)};
    for (const double seconds : rank.by_cause) row.push_back(Seconds(seconds));
    row.push_back(Seconds(rank.total()));
    row.push_back(Percent(side.step_seconds > 0 ? rank.total() / side.step_seconds : 0));
    const auto [peer, longest] = rank.longest_wait();
    row.push_back(peer >= 0 ? fmt::format("rank {} ({})", peer, FormatSeconds(longest)) : "");
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table PathTable(const Side& side) {
  Table t;
  t.caption = fmt::format("What the {} step consists of (critical path)", side.name);
  t.head = {"<what", "rank", "pieces", "time", "share"};
  const auto shares = Shares(side.typical, side.path);
  for (const PathShare& s : shares)
    t.rows.push_back({Escape(s.name), fmt::format("{}", s.rank), fmt::format("{}", s.count), FormatSeconds(s.seconds),
                      Percent(side.step_seconds > 0 ? s.seconds / side.step_seconds : 0)});
  return t;
}

}  // namespace

std::string BubbleSection(const Facts& f) {
  if (f.main() == nullptr) return "";
  std::string out =
      "<section id=\"bubbles\"><h2>Why ranks did not compute</h2>\n<p>Of one step, per rank: what the compute stream "
      "does not "
      "fill, by cause. Busy time and causes add up to the step; words are explained at the end of the page.</p>\n<p "
      "class=\"legend\">";
  double full = 0;
  std::array<bool, kBubbleCauseCount> used{};
  for (const auto* side : {&f.predicted, &f.measured})
    if (*side)
      for (const RankBubbles& r : (*side)->bubbles.ranks) {
        full = std::max(full, r.total());
        for (int c = 0; c < kBubbleCauseCount; ++c) used[c] = used[c] || r.by_cause[c] > 0;
      }
  for (int c = 0; c < kBubbleCauseCount; ++c)
    if (used[c]) Add(out, "<span>{}{}</span> ", Swatch(ColourOf(static_cast<BubbleCause>(c))), kBubbleCauseNames[c]);
  out += "</p>\n<div class=\"pair\">\n";
  for (const auto* side : {&f.predicted, &f.measured})
    if (*side) out += Bars(**side, full);
  out += "</div>\n";
  for (const auto* side : {&f.measured, &f.predicted})
    if (*side) out += TableOf(**side).Print();
  out += "<div class=\"pair\">\n";
  for (const auto* side : {&f.predicted, &f.measured})
    if (*side) out += "<div>" + PathTable(**side).Print(kMaxShares) + "</div>\n";
  return out + "</div></section>\n";
}

}  // namespace penstock::report::html
