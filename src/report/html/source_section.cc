// Where the numbers come from: provenance of every duration, facts of the caller.
#include <array>
#include <map>

#include "base/units.h"
#include "report/html/facts.h"
#include "report/html/markup.h"
#include "report/timeline_io.h"

namespace penstock::report::html {
namespace {

std::string_view Meaning(schedule::Provenance p) {
  switch (p) {
    case schedule::Provenance::measured:
      return "it ran, and a clock was read";
    case schedule::Provenance::predicted:
      return "computed from prices inside the range they were measured or stated for";
    case schedule::Provenance::emulated:
      return "the rank slept for the predicted time; order and waiting are real, speed is not";
    case schedule::Provenance::extrapolated:
      return "computed from prices outside the range they were measured or stated for";
  }
  return "";
}

bool Caution(schedule::Provenance p) {
  return p == schedule::Provenance::emulated || p == schedule::Provenance::extrapolated;
}

Table Provenances(const Facts& f) {
  Table t;
  t.caption = "Marks of durations";
  t.head = {"<timeline", "<mark", "actions", "time", "<which means"};
  for (const auto* side : {&f.predicted, &f.measured}) {
    if (!*side) continue;
    std::map<schedule::Provenance, std::pair<int64_t, double>> marks;
    for (const schedule::Event& e : (*side)->timeline->events) {
      auto& [count, seconds] = marks[e.provenance];
      ++count;
      seconds += e.end - e.start - e.waited;
    }
    for (const auto& [mark, sum] : marks)
      t.rows.push_back({(*side)->name,
                        fmt::format("<span class=\"mark{}\">{}</span>", Caution(mark) ? " caution" : "", Name(mark)),
                        fmt::format("{}", sum.first), FormatSeconds(sum.second), std::string(Meaning(mark))});
  }
  if (f.input.uncalibrated)
    t.rows.push_back({"predicted", "<span class=\"mark caution\">uncalibrated</span>", "all", "",
                      "the prices are stated ones: nobody measured this cluster"});
  return t;
}

}  // namespace

std::string SourceSection(const Facts& f) {
  std::string out = "<section id=\"sources\"><h2>Where the numbers come from</h2>\n";
  if (const Table t = Provenances(f); !t.rows.empty()) out += t.Print();
  out += "<dl class=\"facts\">\n";
  const auto fact = [&](std::string_view key, const std::string& value) {
    Add(out, "<div><dt>{}</dt><dd>{}</dd></div>\n", Escape(key), Escape(value));
  };
  if (const schedule::Schedule* s = f.input.schedule; s != nullptr) {
    fact("schedule", s->name);
    fact("ranks", fmt::format("{}", s->num_ranks()));
    fact("stages", fmt::format("{}", s->num_stages()));
    fact("micro-batches", fmt::format("{}", s->num_micro_batches()));
    fact("actions of a step", fmt::format("{}", s->num_actions()));
  }
  if (const Side* side = f.main(); side != nullptr) {
    if (f.input.schedule == nullptr) fact("ranks", fmt::format("{}", side->typical.num_ranks));
    int64_t bytes = 0;
    for (const schedule::Event& e : side->typical.events)
      if (e.action.key.kind == schedule::Kind::send || e.action.key.kind == schedule::Kind::collective)
        bytes += e.bytes;
    if (bytes > 0) fact("bytes sent and reduced in a step", FormatBytes(bytes));
    fact("recorded steps", fmt::format("{}", FindBubbles(*side->timeline, f.graph).steps));
  }
  for (const auto& [key, value] : f.input.facts) fact(key, value);
  return out + "</dl></section>\n";
}

}  // namespace penstock::report::html
