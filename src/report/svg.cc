#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "base/units.h"
#include "report/breakdown.h"
#include "report/colours.h"
#include "report/html/markup.h"
#include "report/timeline_io.h"
#include "schedule/action.h"

namespace penstock::report {
namespace {

using html::Escape;
using schedule::Event;
using schedule::Kind;
using schedule::Stream;
using schedule::Timeline;

constexpr double kLeft = 64, kRight = 20, kTop = 52, kRow = 30, kBox = 22, kStrip = 4, kAxis = 44, kLegend = 26;
constexpr double kMinWidth = 720;
constexpr double kNarrow = 0.6;      // pixels below which boxes are merged
constexpr double kDigitWidth = 6.6;  // of the numbers in the boxes

// 1, 2 or 5 times a power of ten, about `span / count`.
double NiceStep(double span, double count) {
  const double rough = span / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) return factor * power;
  return 10 * power;
}

// "#rrggbb" towards black.
std::string Darker(std::string_view colour, double amount) {
  const unsigned long value = std::stoul(std::string(colour.substr(1)), nullptr, 16);
  const auto channel = [&](int shift) { return static_cast<unsigned>(((value >> shift) & 0xff) * (1 - amount)); };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(16), channel(8), channel(0));
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const SvgOptions& options) : options_(options) {
    shown_.title = timeline.title;
    shown_.num_ranks = timeline.num_ranks;
    for (const Event& e : timeline.events)
      if (!options.step || e.step == *options.step) shown_.events.push_back(e);
    std::stable_sort(shown_.events.begin(), shown_.events.end(), [](const Event& a, const Event& b) {
      return a.rank != b.rank ? a.rank < b.rank : a.start < b.start;
    });
    bool first = true;
    double shortest = 0;
    for (const Event& e : shown_.events) {
      start_ = first ? e.start : std::min(start_, e.start);
      end_ = first ? e.end : std::max(end_, e.end);
      first = false;
      const double work = e.end - e.start - e.waited;
      if (schedule::IsComputeKind(e.action.key.kind) && work > 0)
        shortest = shortest == 0 ? work : std::min(shortest, work);
      NoteStage(e);
    }
    // Wide enough for the numbers in the shortest box, no wider than asked for.
    const double span = end_ - start_;
    const double wanted = shortest > 0 ? span / shortest * 24 : kMinWidth;
    plot_ = std::clamp(wanted, std::min(kMinWidth, options.width), options.width) - kLeft - kRight;
    scale_ = span > 0 ? plot_ / span : 1;
    height_ = kTop + kRow * std::max(1, shown_.num_ranks) + kAxis + kLegend;
  }

  std::string Draw() {
    const double width = kLeft + plot_ + kRight;
    Append(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
        "font-family=\"Helvetica, Arial, sans-serif\">\n",
        width, height_, width, height_);
    Append(
        "<style>.b{{stroke:#fff;stroke-width:.6}}.n{{font-size:11px;text-anchor:middle;pointer-events:none}}"
        ".l{{font-size:12px}}.g{{stroke:#ddd}}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    Head();
    Axis();
    for (int32_t r = 0; r < shown_.num_ranks; ++r) {
      Append("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"#f4f4f4\"/>", kLeft, Y(r), plot_,
             kBox);
      Append("<text class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">rank {}</text>\n", kLeft - 8, Y(r) + 15,
             r);
    }
    for (const Event& e : shown_.events) Box(e);
    for (auto& [lane, run] : open_) Flush(run);
    Legend();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  double X(double time) const { return kLeft + (time - start_) * scale_; }
  static double Y(int32_t rank) { return kTop + kRow * rank; }
  std::string Time(double time) const { return options_.seconds ? FormatSeconds(time) : fmt::format("{:.6g}", time); }

  void NoteStage(const Event& e) {
    if (schedule::IsComputeKind(e.action.key.kind)) stages_[e.rank].insert(e.action.key.unit.stage);
    kinds_[static_cast<size_t>(e.action.key.kind)] = true;
  }
  // 0 for the first stage of a rank, up to 1 for the last.
  double Shade(const Event& e) const {
    const auto it = stages_.find(e.rank);
    if (!schedule::IsComputeKind(e.action.key.kind) || it->second.size() < 2) return 0;
    const auto position = std::distance(it->second.begin(), it->second.find(e.action.key.unit.stage));
    return static_cast<double>(position) / static_cast<double>(it->second.size() - 1);
  }

  void Head() {
    const Breakdown b = Analyse(shown_);
    std::set<schedule::Provenance> provenance;
    for (const Event& e : shown_.events) provenance.insert(e.provenance);
    std::string how;
    for (const auto p : provenance) how += fmt::format("{}{}", how.empty() ? "" : ", ", Name(p));
    Append("<text x=\"{:.1f}\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>\n", kLeft,
           Escape(shown_.title));
    Append("<text class=\"l\" x=\"{:.1f}\" y=\"40\" fill=\"#444\">{} ranks · {} {} · bubble {:.1f} %{}{}</text>\n",
           kLeft, shown_.num_ranks, options_.seconds ? "" : "makespan", Time(b.makespan), 100 * b.bubble_fraction,
           how.empty() ? "" : " · ", how);
  }

  void Axis() {
    const double span = end_ - start_;
    if (span <= 0) return;
    const double bottom = Y(shown_.num_ranks);
    const double step = NiceStep(span, std::max(2.0, plot_ / 90));
    for (int i = 0; i * step <= span * 1.0001; ++i) {
      const double x = X(start_ + i * step);
      Append("<line class=\"g\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>", x, kTop - 4,
             bottom + 2);
      Append("<text class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#444\">{}</text>\n", x,
             bottom + 18, i == 0 ? "0" : Time(i * step));
    }
  }

  // Boxes that follow each other within a pixel and have one colour are drawn as one.
  struct Run {
    double x = 0, end = 0, y = 0, height = 0;
    Kind kind = Kind::forward;
    int64_t count = 0;
  };

  void Box(const Event& e) {
    const bool compute = e.action.stream == Stream::compute;
    const double work = e.start + e.waited;
    const double x = X(work), end = X(e.end);
    const double y = compute ? Y(e.rank) : Y(e.rank) + kBox + 1;
    const double height = compute ? kBox : kStrip;
    if (e.end <= work && !compute) return;  // a message that costs nothing
    Run& run = open_[{e.rank, compute}];
    if (end - x < kNarrow) {
      if (run.count > 0 && run.kind == e.action.key.kind && x - run.end < kNarrow) {
        run.end = std::max(run.end, end);
        ++run.count;
        return;
      }
      Flush(run);
      run = {x, end, y, height, e.action.key.kind, 1};
      return;
    }
    Flush(run);
    Append("<g><title>{}, rank {}: {} to {}{}{}</title>", Escape(ToString(e.action)), e.rank, Time(e.start - start_),
           Time(e.end - start_), e.waited > 0 ? ", of which waited " + Time(e.waited) : "",
           e.bytes > 0 ? ", " + FormatBytes(e.bytes) : "");
    Append("<rect class=\"b\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>", x, y, end - x,
           height, Darker(ColourOf(e.action.key.kind), 0.28 * Shade(e)));
    const std::string number = e.action.key.micro_batch >= 0 ? fmt::format("{}", e.action.key.micro_batch) : "";
    if (compute && !number.empty() && end - x >= kDigitWidth * static_cast<double>(number.size()) + 2)
      Append("<text class=\"n\" x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", (x + end) / 2, y + 15, number);
    out_ += "</g>\n";
  }

  void Flush(Run& run) {
    if (run.count > 0)
      Append("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>\n", run.x, run.y,
             std::max(0.3, run.end - run.x), run.height, ColourOf(run.kind));
    run.count = 0;
  }

  void Legend() {
    double x = kLeft;
    const double y = height_ - kLegend;
    for (int k = 0; k < schedule::kKindCount; ++k) {
      if (!kinds_[k]) continue;
      const std::string_view name = Name(static_cast<Kind>(k));
      Append("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"{}\"/>", x, y,
             ColourOf(static_cast<Kind>(k)));
      Append("<text class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 19, y + 12, name);
      x += 34 + 6.6 * static_cast<double>(name.size());
    }
    const bool shaded =
        std::any_of(stages_.begin(), stages_.end(), [](const auto& entry) { return entry.second.size() > 1; });
    if (shaded)
      Append("<text class=\"l\" x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#444\">darker: later stage</text>\n", x, y + 12);
  }

  const SvgOptions& options_;
  Timeline shown_;
  double start_ = 0, end_ = 0, plot_ = 0, scale_ = 1, height_ = 0;
  std::map<int32_t, std::set<int>> stages_;
  std::array<bool, schedule::kKindCount> kinds_{};
  std::map<std::pair<int32_t, bool>, Run> open_;
  std::string out_;
};

}  // namespace

std::string DrawSvg(const Timeline& timeline, const SvgOptions& options) { return Drawing(timeline, options).Draw(); }

}  // namespace penstock::report
