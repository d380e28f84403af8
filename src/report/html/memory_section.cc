#include <algorithm>
#include <array>
#include <numeric>

#include "base/units.h"
#include "report/colours.h"
#include "report/html/facts.h"
#include "report/html/markup.h"

namespace penstock::report::html {
namespace {

constexpr size_t kMaxCharts = 8;
constexpr int kColumns = 320;  // of a chart: the highest moment in each is drawn
constexpr double kWidth = 560, kHeight = 128, kLeft = 66, kBottom = 18, kTop = 8;

using ByClass = std::array<int64_t, kBufferClassCount>;
int64_t Total(const ByClass& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

// Live bytes of a rank on its device, by column of time.
std::vector<ByClass> Columns(const Side& side, int32_t rank) {
  std::vector<ByClass> columns(kColumns);
  ByClass now{};
  int at = 0;
  bool fresh = true;  // nothing has been seen in column `at` yet
  const auto advance = [&](int to) {
    if (to <= at) return;
    if (fresh && Total(now) > Total(columns[at])) columns[at] = now;
    for (int c = at + 1; c <= to; ++c) columns[c] = now;
    at = to;
  };
  for (const schedule::MemoryEvent& e : side.typical.memory) {
    if (e.rank != rank || e.tier != Tier::device) continue;
    const double share = side.step_seconds > 0 ? e.time / side.step_seconds : 0;
    advance(std::clamp(static_cast<int>(share * kColumns), 0, kColumns - 1));
    now[static_cast<size_t>(e.buffer_class)] = e.live_bytes;
    if (Total(now) >= Total(columns[at])) columns[at] = now;
    fresh = false;
  }
  advance(kColumns - 1);
  return columns;
}

// The power of two times 1, 2 or 4 of a binary unit that is next above: 256 MiB, 1 GiB.
double NiceBytes(double bytes) {
  double nice = 1;
  while (nice < bytes) nice *= 2;
  return nice;
}

std::string Chart(const Side& side, int32_t rank, int64_t limit, double top) {
  const auto columns = Columns(side, rank);
  const double plot = kHeight - kTop - kBottom, width = (kWidth - kLeft) / kColumns;
  const auto y = [&](int64_t bytes) { return kTop + plot * (1 - static_cast<double>(bytes) / top); };
  std::string out = fmt::format(
      "<svg class=\"chart\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{} memory of rank {} over one "
      "step\">\n",
      kWidth, kHeight, side.name, rank);
  const auto tick = [&](double bytes) {
    Add(out, "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", kLeft, kWidth,
        kTop + plot * (1 - bytes / top));
    Add(out, "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 6,
        kTop + plot * (1 - bytes / top) + 4, bytes > 0 ? FormatBytes(static_cast<int64_t>(bytes)) : "0");
  };
  const double step = NiceBytes(top / 3);
  for (double bytes = 0; bytes <= top; bytes += step) tick(bytes);
  std::vector<int64_t> below(kColumns, 0);
  for (int c = 0; c < kBufferClassCount; ++c) {
    if (std::all_of(columns.begin(), columns.end(), [&](const ByClass& b) { return b[c] == 0; })) continue;
    std::string up, down;
    for (int i = 0; i < kColumns; ++i) {
      const int64_t above = below[i] + columns[i][c];
      const double x = kLeft + i * width;
      const bool same = i > 0 && i + 1 < kColumns && columns[i] == columns[i - 1] && columns[i] == columns[i + 1];
      if (!same) {
        Add(up, "{}{:.1f} {:.1f}L{:.1f} {:.1f}", up.empty() ? "M" : "L", x, y(above), x + width, y(above));
        down = fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", x + width, y(below[i]), x, y(below[i])) + down;
      }
      below[i] = above;
    }
    Add(out, "<path fill=\"{}\" d=\"{}{}Z\"><title>{}</title></path>\n", ColourOf(static_cast<BufferClass>(c)), up,
        down, InWords(kBufferClassNames[c]));
  }
  for (const auto part : {"limit-ground", "limit"})  // a ground, so that it is seen on every colour
    if (limit > 0)
      Add(out, "<line class=\"{3}\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", kLeft, kWidth, y(limit),
          part);
  Add(out,
      "<text class=\"tick\" x=\"{}\" y=\"{}\">0</text><text class=\"tick\" x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">{}</text></svg>\n",
      kLeft, kHeight - 4, kWidth, kHeight - 4, FormatSeconds(side.step_seconds));
  return out;
}

bool HasMemory(const std::optional<Side>& side) { return side && !side->breakdown.memory.empty(); }

std::string Limits(const char* what, int64_t peak, int64_t limit, bool far) {
  std::string text = fmt::format("<span class=\"soft\">{} {}", what, FormatBytes(peak));
  if (limit > 0)
    Add(text, ", <span class=\"dash\">limit {}{}</span>", FormatBytes(limit), far ? " (off the scale)" : "");
  return text + "</span>";
}

std::string Charts(const Facts& f) {
  std::vector<size_t> rows(f.peaks.size());
  std::iota(rows.begin(), rows.end(), 0);
  const auto share = [&](size_t r) {
    return std::pair(
        f.peaks[r].limit > 0 ? static_cast<double>(f.peaks[r].bytes()) / static_cast<double>(f.peaks[r].limit) : 0.0,
        f.peaks[r].bytes());
  };
  if (rows.size() > kMaxCharts) {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return share(a) > share(b); });
    rows.resize(kMaxCharts);
    std::sort(rows.begin(), rows.end());
  }
  std::array<bool, kBufferClassCount> used{};
  for (const auto* side : {&f.predicted, &f.measured})
    if (HasMemory(*side))
      for (const auto& e : (*side)->typical.memory)
        if (e.live_bytes > 0 && e.tier == Tier::device) used[static_cast<size_t>(e.buffer_class)] = true;
  std::string out = "<p class=\"legend\">";
  for (int c = 0; c < kBufferClassCount; ++c)
    if (used[c])
      Add(out, "<span>{}{}</span> ", Swatch(ColourOf(static_cast<BufferClass>(c))), InWords(kBufferClassNames[c]));
  out += "</p>\n";
  if (rows.size() < f.peaks.size())
    Add(out, "<p class=\"note\">Drawn: the {} ranks nearest to their limits; the table has all {}.</p>\n", rows.size(),
        f.peaks.size());
  const bool both = HasMemory(f.predicted) && HasMemory(f.measured);
  out += "<div class=\"pair\">\n";
  for (const size_t r : rows) {
    double top = static_cast<double>(std::max(f.peaks[r].limit, std::max(f.peaks[r].predicted, f.peaks[r].measured)));
    // A limit far above would press what there is to see flat; it is in the table.
    const bool far =
        f.peaks[r].limit > 0 && static_cast<double>(f.peaks[r].bytes()) * 20 < static_cast<double>(f.peaks[r].limit);
    if (far) top = static_cast<double>(std::max(f.peaks[r].predicted, f.peaks[r].measured));
    top = std::max(1.0, 1.06 * top);
    for (const auto* side : {&f.predicted, &f.measured})
      if (HasMemory(*side) && r < (*side)->breakdown.memory.size())
        Add(out, "<figure><figcaption>rank {}{}{}</figcaption>{}</figure>\n", r, both ? ", " + (*side)->name : "",
            Limits(side == &f.measured ? "between actions up to" : "peak", (*side)->breakdown.memory[r].bytes,
                   f.peaks[r].limit, far),
            Chart(**side, static_cast<int32_t>(r), far ? 0 : f.peaks[r].limit, top));
  }
  return out + "</div>\n";
}

}  // namespace

std::string MemorySection(const Facts& f) {
  if (f.tightest < 0) return "";
  std::string out = "<section id=\"memory\"><h2>Memory</h2>\n";
  const bool predicted = HasMemory(f.predicted), measured = HasMemory(f.measured);
  if (predicted || measured)
    Add(out,
        "<p>Live bytes on the device over one step, by class{}: what is kept between actions. Peaks in the table count "
        "what comes and goes inside an action as well.</p>\n{}",
        predicted && measured ? ""
        : predicted           ? ", predicted"
                              : ", measured",
        Charts(f));
  else
    out += "<p>Peaks only: no memory events are in the timelines.</p>\n";
  Table t;
  t.caption = f.input.shared_memory ? "Peak memory of every rank; the limit is the machine's, shared by all ranks"
                                    : "Peak memory of every rank";
  t.head = {"rank",  "predicted",    "measured",
            "limit", "of the limit", "<composition at the peak (measured, where it was)"};
  for (size_t r = 0; r < f.peaks.size(); ++r) {
    const RankPeak& p = f.peaks[r];
    std::vector<std::pair<int64_t, int>> classes;
    for (int c = 0; c < kBufferClassCount; ++c)
      if (p.composition.by_class[c] > 0) classes.push_back({p.composition.by_class[c], c});
    std::sort(classes.rbegin(), classes.rend());
    std::string composition;
    for (size_t i = 0; i < classes.size(); ++i)
      composition += fmt::format("{}{} {}", i == 0 ? "" : ", ", InWords(kBufferClassNames[classes[i].second]),
                                 FormatBytes(classes[i].first));
    // What comes and goes inside one action is in the allocator's peak, and in no event.
    if (const int64_t inside = p.bytes() - p.composition.bytes; p.composition.bytes > 0 && inside > 0)
      composition += fmt::format(", inside actions {}", FormatBytes(inside));
    const auto bytes = [](int64_t b) { return b > 0 ? FormatBytes(b) : std::string("–"); };
    const double share = p.limit > 0 ? static_cast<double>(p.bytes()) / static_cast<double>(p.limit) : 0;
    t.rows.push_back({fmt::format("{}", r), bytes(p.predicted), bytes(p.measured), bytes(p.limit),
                      p.limit > 0 ? fmt::format("{}{}{}", share > 1 ? "<b class=\"bad\">" : "", Percent(share),
                                                share > 1 ? "</b>" : "")
                                  : "–",
                      composition});
  }
  if (f.input.shared_memory && f.peaks[f.tightest].limit > 0)
    t.rows.push_back({"all", "", FormatBytes(f.all_peaks()), FormatBytes(f.peaks[f.tightest].limit),
                      Percent(f.memory_share()), "sum of the peaks"});
  return out + t.Print() + "</section>\n";
}

}  // namespace penstock::report::html
