#include <algorithm>
#include <cmath>
#include <functional>

#include "base/units.h"
#include "report/html/facts.h"
#include "report/html/markup.h"
#include "report/run_report.h"

namespace penstock::report::html {
namespace {

constexpr double kWidth = 400, kHeight = 170, kLeft = 58, kBottom = 22, kTop = 10;
constexpr size_t kPoints = 500;  // of a curve; beyond, means of neighbours

struct Curve {
  std::string name;
  std::function<double(const StepMetrics&)> value;
  std::function<std::string(double)> print;
  bool from_zero;
};

std::string Draw(const std::vector<StepMetrics>& steps, const Curve& curve) {
  struct Point {
    double step, value;
  };
  std::vector<Point> points;
  const size_t cells = std::min(kPoints, steps.size());
  double low = INFINITY, high = -INFINITY;
  for (size_t c = 0; c < cells; ++c) {
    const size_t from = c * steps.size() / cells, to = (c + 1) * steps.size() / cells;
    double sum = 0, at = 0;
    for (size_t i = from; i < to; ++i) {
      sum += curve.value(steps[i]);
      at += static_cast<double>(steps[i].step);
    }
    const double n = static_cast<double>(to - from);
    points.push_back({at / n, sum / n});
    if (!std::isfinite(sum)) continue;
    low = std::min(low, sum / n);
    high = std::max(high, sum / n);
  }
  if (!std::isfinite(low)) return fmt::format("<p>{}: no finite value.</p>\n", Escape(curve.name));
  if (curve.from_zero) low = std::min(low, 0.0);
  if (high <= low) high = low + std::max(1e-12, std::abs(low) * 0.1);
  const double first = points.front().step, last = std::max(points.back().step, first + 1);
  const auto x = [&](double step) { return kLeft + (kWidth - kLeft - 6) * (step - first) / (last - first); };
  const auto y = [&](double value) { return kTop + (kHeight - kTop - kBottom) * (1 - (value - low) / (high - low)); };
  std::string out = fmt::format(
      "<figure><figcaption>{0}</figcaption><svg class=\"chart\" viewBox=\"0 0 {1:.0f} {2:.0f}\" role=\"img\" "
      "aria-label=\"{0} over steps: "
      "first {3}, last {4}\">\n",
      Escape(curve.name), kWidth, kHeight, Escape(curve.print(points.front().value)),
      Escape(curve.print(points.back().value)));
  for (const double share : {0.0, 0.5, 1.0}) {
    const double value = low + share * (high - low);
    Add(out,
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick\" x=\"{3}\" "
        "y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        kLeft, kWidth, y(value), kLeft - 6, y(value) + 4, Escape(curve.print(value)));
  }
  std::string path;
  bool open = false;
  for (const Point& p : points) {
    if (!std::isfinite(p.value)) {
      Add(out,
          "<line class=\"limit\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"><title>step {3:.0f}: not "
          "finite</title></line>",
          x(p.step), kTop, kHeight - kBottom, p.step);
      open = false;
      continue;
    }
    Add(path, "{}{:.1f} {:.1f}", open ? "L" : "M", x(p.step), y(p.value));
    open = true;
  }
  Add(out, "<path class=\"curve\" d=\"{}\"/>\n", path);
  if (points.size() == 1)
    Add(out, "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", x(points[0].step), y(points[0].value));
  Add(out,
      "<text class=\"tick\" x=\"{}\" y=\"{}\">step {:.0f}</text><text class=\"tick\" x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">{:.0f}</text>"
      "</svg></figure>\n",
      kLeft, kHeight - 5, steps.front().step * 1.0, kWidth - 4, kHeight - 5, steps.back().step * 1.0);
  return out;
}

}  // namespace

std::string CurveSection(const Facts& f) {
  const auto& steps = f.input.metrics;
  if (steps.empty()) return "";
  const LossSummary s = Summarise(steps);
  std::string out = "<section id=\"curves\"><h2>The run</h2>\n";
  Add(out,
      "<p>{} steps: loss {:.4f} at first, {:.4f} at last, lowest {:.4f} in step {}; {} tokens/s and {} a step "
      "(medians){}.</p>\n",
      steps.size(), s.first.loss, s.last.loss, s.lowest.loss, s.lowest.step, FormatCount(s.tokens_per_second),
      FormatSeconds(s.seconds_per_step),
      s.skipped_updates > 0 ? fmt::format("; {} updates skipped", s.skipped_updates) : "");
  out += "<div class=\"triple\">\n";
  for (const Curve& curve :
       {Curve{"Loss", [](const StepMetrics& m) { return m.loss; }, [](double v) { return fmt::format("{:.4g}", v); },
              false},
        Curve{"Tokens per second", [](const StepMetrics& m) { return m.tokens_per_second; }, FormatCount, true},
        Curve{"Step time", [](const StepMetrics& m) { return m.seconds; },
              [](double v) { return v > 0 ? FormatSeconds(v) : std::string("0"); }, true}})
    out += Draw(steps, curve);
  return out + "</div></section>\n";
}

}  // namespace penstock::report::html
