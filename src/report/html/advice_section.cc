#include "base/units.h"
#include "report/advice.h"
#include "report/html/facts.h"
#include "report/html/markup.h"

namespace penstock::report::html {

std::string AdviceSection(const Facts& f) {
  const Side* side = f.main();
  if (side == nullptr) return "";
  const auto all = AdviceFor(side->typical, side->path, side->bubbles, f.memory_share());
  if (all.empty()) return "";
  Table t;
  t.caption = fmt::format("What could make the {} step of {} shorter", side->name, FormatSeconds(side->step_seconds));
  t.head = {"at most", "of the step", "<change"};
  for (const Advice& a : all)
    t.rows.push_back({FormatSeconds(a.seconds), Percent(a.seconds / side->step_seconds), Escape(a.text)});
  std::string out =
      "<section id=\"advice\"><h2>What would help</h2>\n<p>Upper bounds, each by itself; they overlap, and what a "
      "change "
      "costs elsewhere is not in them. <code>penstock simulate</code> with the change says what it brings.";
  if (f.input.shared_cores)
    out +=
        " Ranks share cores here: the core of an idle rank works for the others, so what only moves work between "
        "ranks gains less than this.";
  return out + "</p>\n" + t.Print() + "</section>\n";
}

}  // namespace penstock::report::html
