#include "report/html.h"

#include "base/units.h"
#include "report/html/assets.h"
#include "report/html/facts.h"
#include "report/html/markup.h"

namespace penstock::report {

std::string HtmlReport(const HtmlInput& input) {
  using html::Add;
  using html::Escape;
  const html::Facts facts(input);
  std::string out;
  Add(out,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
      "<header><div><h1>{}</h1>\n<p class=\"sub\">",
      Escape(input.title), html::kStyleCss, Escape(input.title));
  if (input.schedule != nullptr)
    Add(out, "{}: {} ranks, {} stages, {} micro-batches, {} actions", Escape(input.schedule->name),
        input.schedule->num_ranks(), input.schedule->num_stages(), input.schedule->num_micro_batches(),
        input.schedule->num_actions());
  else if (const html::Side* side = facts.main(); side != nullptr)
    Add(out, "{} ranks, {} actions in a step", side->typical.num_ranks, side->typical.events.size());
  if (input.uncalibrated) out += " <span class=\"mark caution\">uncalibrated</span>";
  for (const auto mark : {schedule::Provenance::emulated, schedule::Provenance::extrapolated})
    for (const auto* timeline : {input.predicted, input.measured}) {
      if (timeline == nullptr) continue;
      bool any = false;
      for (const schedule::Event& e : timeline->events) any |= e.provenance == mark;
      if (!any) continue;
      Add(out, " <span class=\"mark caution\">{}</span>",
          mark == schedule::Provenance::emulated ? "emulated" : "extrapolated");
      break;
    }
  out += "</p></div>\n<button id=\"theme\" type=\"button\" hidden>dark</button></header>\n<main>\n";
  for (const std::string& warning : input.warnings) Add(out, "<p class=\"warning\">{}</p>\n", Escape(warning));
  out += html::Headline(facts) + html::AdviceSection(facts) + html::TimelineSection(facts) +
         html::BubbleSection(facts) + html::GapSection(facts) + html::LinkSection(facts) + html::MemorySection(facts) +
         html::CurveSection(facts) + html::SourceSection(facts) + html::GlossarySection();
  Add(out, "</main>\n<script>\n{}</script>\n</body>\n</html>\n", html::kTimelineJs);
  return out;
}

}  // namespace penstock::report
