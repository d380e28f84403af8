#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ostream>

#include "base/units.h"

namespace penstock::report {
namespace {

constexpr double kTerminalInterval = 0.2;  // seconds
constexpr double kLineInterval = 30;
constexpr int64_t kLines = 20;
constexpr double kSmoothing = 0.1;  // weight of the newest step

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Progress::Progress(std::ostream& out, bool terminal, int64_t first_step, int64_t last_step, Clock clock)
    : out_(out),
      terminal_(terminal),
      first_step_(first_step),
      last_step_(last_step),
      clock_(clock ? std::move(clock) : Clock(&Now)),
      next_shown_step_(first_step) {}

void Progress::Update(const StepMetrics& metrics) {
  ++seen_;
  // The first step warms caches up and would spoil the estimate; it stands in until the second.
  if (seen_ <= 2)
    seconds_per_step_ = metrics.seconds;
  else
    seconds_per_step_ += kSmoothing * (metrics.seconds - seconds_per_step_);
  const double now = clock_();
  const bool edge = metrics.step == first_step_ || metrics.step == last_step_;
  const bool shown_anyway = !metrics.applied || metrics.eval.has_value();
  const bool due = terminal_ ? now - last_shown_ >= kTerminalInterval
                             : metrics.step >= next_shown_step_ || now - last_shown_ >= kLineInterval;
  if (!edge && !due && !shown_anyway) return;
  last_shown_ = now;
  while (next_shown_step_ <= metrics.step)
    next_shown_step_ += std::max<int64_t>(1, (last_step_ - first_step_ + 1) / kLines);
  const std::string line = Line(metrics);
  if (!terminal_) {
    out_ << line << "\n" << std::flush;
    return;
  }
  out_ << '\r' << line << std::string(width_ > line.size() ? width_ - line.size() : 0, ' ');
  width_ = line.size();
  if (shown_anyway)
    Finish();  // keeps it in sight
  else
    out_ << std::flush;
}

void Progress::Finish() {
  if (terminal_ && width_ > 0) out_ << "\n" << std::flush;
  width_ = 0;
}

std::string Progress::Line(const StepMetrics& m) const {
  const int digits = static_cast<int>(std::to_string(last_step_).size());
  std::string line = fmt::format("step {:>{}}/{}  loss {:.4f}", m.step, digits, last_step_, m.loss);
  if (m.grad_norm) line += fmt::format("  norm {:.3g}", *m.grad_norm);
  if (m.eval) line += fmt::format("  validation {:.4f}", m.eval->loss);
  line += fmt::format("  {} tokens/s", FormatCount(m.tokens_per_second));
  if (m.step < last_step_) line += fmt::format("  {} left", FormatSeconds(seconds_per_step_ * (last_step_ - m.step)));
  if (!m.applied) line += "  update skipped (not finite)";
  if (!m.applied && m.loss_scale) line += fmt::format(", loss scale was {}", *m.loss_scale);
  return line;
}

bool IsTerminal(int descriptor) { return ::isatty(descriptor) == 1; }

}  // namespace penstock::report
