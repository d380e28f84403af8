// Where the numbers come from: provenance of every duration, facts of the caller.
#include <algorithm>
#include <array>
#include <map>
#include <set>

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
  t.caption = "Marks of durations, of one step";
  t.head = {"<timeline", "<mark", "actions", "<which means"};
  for (const auto* side : {&f.predicted, &f.measured}) {
    if (!*side) continue;
    std::map<schedule::Provenance, int64_t> marks;
    for (const schedule::Event& e : (*side)->typical.events) ++marks[e.provenance];
    for (const auto& [mark, count] : marks)
      t.rows.push_back({(*side)->name,
                        fmt::format("<span class=\"mark{}\">{}</span>", Caution(mark) ? " caution" : "", Name(mark)),
                        fmt::format("{}", count), std::string(Meaning(mark))});
  }
  if (f.input.uncalibrated)
    t.rows.push_back({"predicted", "<span class=\"mark caution\">uncalibrated</span>", "all",
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
  const auto told = [&](std::string_view key) {  // by the caller, who knows better
    return std::any_of(f.input.facts.begin(), f.input.facts.end(), [&](const auto& said) { return said.first == key; });
  };
  const auto own = [&](std::string_view key, const std::string& value) {
    if (!told(key)) fact(key, value);
  };
  for (const auto& [key, value] : f.input.facts) fact(key, value);
  if (const schedule::Schedule* s = f.input.schedule; s != nullptr) {
    own("schedule", fmt::format("{}, {} stages, {} micro-batches", s->name, s->num_stages(), s->num_micro_batches()));
    own("ranks", fmt::format("{}", s->num_ranks()));
    own("actions of a step", fmt::format("{}", s->num_actions()));
  }
  if (const Side* side = f.main(); side != nullptr) {
    if (f.input.schedule == nullptr) own("ranks", fmt::format("{}", side->typical.num_ranks));
    int64_t sent = 0, together = 0;
    for (const schedule::Event& e : side->typical.events) {
      if (e.action.key.kind == schedule::Kind::send) sent += e.bytes;
      if (e.action.key.kind == schedule::Kind::collective) together += e.bytes;
    }
    if (sent > 0) fact("messages of a step", FormatBytes(sent));
    if (together > 0) fact("given to collectives in a step", FormatBytes(together));
    std::set<int32_t> steps;
    for (const schedule::Event& e : side->timeline->events) steps.insert(e.step);
    fact("recorded steps", fmt::format("{}", steps.size()));
  }
  return out + "</dl></section>\n";
}

}  // namespace penstock::report::html
