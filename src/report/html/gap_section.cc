#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"
#include "report/analysis/idle.h"
#include "report/analysis/step.h"
#include "report/html/facts.h"
#include "report/html/markup.h"

namespace penstock::report::html {
namespace {

constexpr double kSmallReason = 1e-3;  // of the step: not a row of its own

std::string Signed(double seconds) {
  return fmt::format("{}{}", seconds < 0 ? "−" : "+", FormatSeconds(std::abs(seconds)));
}

std::string Relative(double predicted, double measured) {
  if (predicted > 0 && measured > 10 * predicted) return fmt::format("× {:.0f}", measured / predicted);
  return predicted > 0
             ? fmt::format("{}{:.1f} %", measured < predicted ? "−" : "+", 100 * std::abs(measured / predicted - 1))
             : "";
}

std::string Reasons(const Gap& gap) {
  Table t;
  t.caption = fmt::format("Reasons, largest first; they add up to the difference of {}", Signed(gap.difference()));
  t.head = {"adds", "<reason"};
  double small = 0;
  int64_t count = 0;
  for (const GapReason& r : gap.reasons) {
    if (std::abs(r.seconds) >= kSmallReason * gap.measured_step) {
      t.rows.push_back({Signed(r.seconds), Escape(r.text)});
    } else {
      small += r.seconds;
      ++count;
    }
  }
  const auto kept = static_cast<std::ptrdiff_t>(t.rows.size());
  if (count > 0) t.rows.push_back({Signed(small), fmt::format("{} smaller differences together", count)});
  // Where its size puts it among the others, so that it is not folded away.
  if (std::abs(gap.other_path) > 1e-6 * gap.measured_step)
    t.rows.insert(
        t.rows.begin() + std::min(kept, std::count_if(gap.reasons.begin(), gap.reasons.end(),
                                                      [&](const GapReason& r) {
                                                        return std::abs(r.seconds) > std::abs(gap.other_path);
                                                      })),
        {Signed(gap.other_path),
         "not explained: in the prediction another path was the longest, so that a part of the above costs nothing"});
  return t.Print(10);
}

std::string Classes(const Gap& gap) {
  Table t;
  t.caption = "Work by kind of action without waiting for others, sum over all ranks, one step";
  t.head = {"<action", "count", "predicted", "measured", "difference", "relative"};
  for (const ClassGap& c : gap.classes)
    t.rows.push_back({Escape(c.name), fmt::format("{}", c.count), FormatSeconds(c.predicted), FormatSeconds(c.measured),
                      Signed(c.difference()), Relative(c.predicted, c.measured)});
  return t.Print(14);
}

std::string Ranks(const Gap& gap) {
  Table t;
  t.caption =
      "Ranks, predicted → measured, one step. Waiting: for another rank, a message, a collective or a copy; other: "
      "warm-up, drain and the host";
  t.head = {"rank", "busy", "waiting", "other", "<waited longer for"};
  const auto cell = [](double p, double m) { return fmt::format("{} → {}", FormatSeconds(p), FormatSeconds(m)); };
  for (size_t r = 0; r < gap.ranks.size(); ++r) {
    const RankGap& g = gap.ranks[r];
    t.rows.push_back({fmt::format("{}", r), cell(g.predicted.busy, g.measured.busy),
                      cell(g.predicted.wait, g.measured.wait), cell(g.predicted.other, g.measured.other),
                      g.waited_for >= 0 ? fmt::format("<span class=\"whole\">rank {} ({})</span>", g.waited_for,
                                                      Signed(g.waited_longer))
                                        : ""});
  }
  return t.Print();
}

// Of one timeline alone.
std::vector<LinkGap> LinksOf(const Side& side, const schedule::StageGraph& graph) {
  std::map<std::pair<int32_t, int32_t>, LinkGap> links;
  for (const analysis::StepEvents& step : analysis::StepsOf(side.typical))
    for (const analysis::Transfer& t : analysis::TransfersOf(side.typical, step, graph)) {
      LinkGap& link = links[{t.from, t.to}];
      link.from = t.from;
      link.to = t.to;
      ++link.messages;
      link.bytes += std::max(side.typical.events[t.send].bytes, side.typical.events[t.recv].bytes);
      if (!t.observed) continue;
      ++link.compared;
      (side.name == "measured" ? link.measured : link.predicted) += std::max(0.0, t.arrival - t.ready);
    }
  std::vector<LinkGap> list;
  for (const auto& [key, link] : links) list.push_back(link);
  return list;
}

}  // namespace

std::string GapSection(const Facts& f) {
  if (!f.gap) return "";
  const Gap& gap = *f.gap;
  std::string out = "<section id=\"gap\"><h2>Predicted against measured</h2>\n";
  Add(out,
      "<p>Predicted {}, measured {} (step {}{}). The reasons are along the critical path of the measured step.</p>\n",
      FormatSeconds(gap.predicted_step), FormatSeconds(gap.measured_step), gap.step + 1,
      gap.measured_steps > 1 ? fmt::format(", the median of {} recorded ones", gap.measured_steps)
                             : std::string(", the only recorded one that is compared"));
  if (gap.unmatched > 0)
    Add(out,
        "<p class=\"warning\">{} measured actions have no predicted one: the prediction is of another schedule.</p>\n",
        gap.unmatched);
  out += Reasons(gap) + "<div class=\"pair\"><div>" + Classes(gap) + "</div><div>" + Ranks(gap) + "</div></div>\n";
  return out + "</section>\n";
}

std::string LinkSection(const Facts& f) {
  const std::vector<LinkGap> links = f.gap                 ? f.gap->links
                                     : f.main() != nullptr ? LinksOf(*f.main(), f.graph)
                                                           : std::vector<LinkGap>{};
  if (links.empty()) return "";
  const bool both = f.gap.has_value();
  Table t;
  t.caption = "Messages of one step by link";
  t.head = {"<link", "messages", "bytes", both ? "compared" : "observed"};
  if (f.predicted) t.head.emplace_back("predicted");
  if (f.measured) t.head.emplace_back("measured");
  if (both) t.head.emplace_back("relative");
  for (const LinkGap& l : links) {
    std::vector<std::string> row = {fmt::format("rank {} → rank {}", l.from, l.to), fmt::format("{}", l.messages),
                                    FormatBytes(l.bytes), fmt::format("{}", l.compared)};
    const auto mean = [&](double seconds) {
      return l.compared > 0 ? FormatSeconds(seconds / static_cast<double>(l.compared)) : std::string("–");
    };
    if (f.predicted) row.push_back(mean(l.predicted));
    if (f.measured) row.push_back(mean(l.measured));
    if (both) row.push_back(Relative(l.predicted, l.measured));
    t.rows.push_back(std::move(row));
  }
  return "<section id=\"links\"><h2>Links</h2>\n<p>Mean time of a message, from the end of the computation that made "
         "it until it "
         "was there; of the messages that somebody waited for, since only then is the arrival known.</p>\n" +
         t.Print() + "</section>\n";
}

}  // namespace penstock::report::html
