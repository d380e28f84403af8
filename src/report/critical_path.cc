#include "report/critical_path.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "report/analysis/idle.h"
#include "report/analysis/names.h"
#include "report/analysis/step.h"

namespace penstock::report {
namespace {

using analysis::Blocker;
using analysis::Gap;
using analysis::StepEvents;
using analysis::WorkStart;
using schedule::Timeline;

struct Work {
  double start, end;
  int32_t event;
};

class Walk {
 public:
  Walk(const Timeline& t, const StepEvents& step, const schedule::StageGraph& graph)
      : t_(t), step_(step), gaps_(analysis::FindGaps(t, step, graph)), meetings_(analysis::MeetingsOf(t, step)) {
    work_.resize(t.num_ranks);
    for (int32_t r = 0; r < t.num_ranks; ++r) {
      double covered = step.start;
      for (const int32_t i : step.computing[r]) {
        const double from = std::max(covered, WorkStart(t.events[i]));
        if (t.events[i].end > from) work_[r].push_back({from, t.events[i].end, i});
        covered = std::max(covered, t.events[i].end);
      }
      for (const int32_t i : step.by_rank[r])
        if (last_ < 0 || t.events[i].end > t.events[last_].end) last_ = i;
    }
    if (last_ >= 0) rank_ = t.events[last_].rank;
  }

  std::vector<PathPiece> Run() {
    time_ = step_.end;
    while (time_ > step_.start) {
      const double before = time_;
      Back();
      // A hand-over that takes no time changes the rank only; a circle of those explains nothing.
      jumps_ = time_ < before ? 0 : jumps_ + 1;
      if (jumps_ > static_cast<int>(work_.size())) {
        Emit({PathKind::host, rank_, -1, -1, -1}, step_.start);
      }
    }
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  void Back() {
    const auto& work = work_[rank_];
    const auto after =
        std::lower_bound(work.begin(), work.end(), time_, [](const Work& w, double time) { return w.start < time; });
    if (after != work.begin() && (after - 1)->end >= time_)
      return Emit({PathKind::work, rank_, -1, (after - 1)->event, -1}, (after - 1)->start);
    const auto& gaps = gaps_[rank_];
    const auto next =
        std::lower_bound(gaps.begin(), gaps.end(), time_, [](const Gap& g, double time) { return g.start < time; });
    if (next == gaps.begin()) return;
    const Gap& gap = *(next - 1);
    // Here for a reason that the gap is not about (its compute waits for something that came later): a collective that
    // joined after another one.
    if (gap.ready > time_ && gap.end > time_) return Queue(gap);
    const bool other_rank = gap.peer >= 0 && gap.peer != gap.rank;
    const double ready = std::min(time_, std::max(step_.start, gap.ready));
    switch (gap.blocker) {
      case Blocker::none:
        return Emit({PathKind::host, rank_, -1, -1, gap.event}, gap.start);
      case Blocker::copy:
        return Emit({PathKind::copy, rank_, -1, gap.cause, gap.event}, gap.start);
      case Blocker::message:
      case Blocker::collective: {
        const PathKind kind = gap.blocker == Blocker::message ? PathKind::message : PathKind::collective;
        // It lay there: what was done before is what mattered.
        if (other_rank && !analysis::EndedByArrival(gap.seconds(), gap.end - gap.ready))
          return Emit({kind, rank_, gap.peer, -1, -1}, gap.start);
        Emit({kind, rank_, gap.peer, gap.cause, gap.event}, other_rank ? ready : gap.start);
        if (other_rank) rank_ = gap.peer;
        return;
      }
    }
  }

  void Queue(const Gap& gap) {
    const double tolerance = 1e-9 * step_.length();
    for (const int32_t i : step_.by_rank[rank_]) {
      const schedule::Event& e = t_.events[i];
      if (e.action.key.kind != schedule::Kind::collective || std::abs(e.end - time_) > tolerance) continue;
      const analysis::Meeting& m = meetings_[i];
      if (m.last_rank < 0 || m.joined >= time_) continue;
      Emit({PathKind::collective, rank_, m.last_rank, i, -1}, std::max(step_.start, m.joined));
      rank_ = m.last_rank;
      return;
    }
    Emit({PathKind::host, rank_, -1, -1, gap.event}, gap.start);
  }

  void Emit(PathPiece piece, double start) {
    piece.start = start;
    piece.end = time_;
    time_ = start;
    if (piece.end > piece.start) path_.push_back(piece);
  }

  const Timeline& t_;
  const StepEvents& step_;
  std::vector<std::vector<Gap>> gaps_;
  std::vector<analysis::Meeting> meetings_;
  std::vector<std::vector<Work>> work_;  // [rank] disjoint
  int32_t last_ = -1, rank_ = 0;
  double time_ = 0;
  int jumps_ = 0;
  std::vector<PathPiece> path_;
};

}  // namespace

std::vector<PathPiece> CriticalPath(const Timeline& timeline, int32_t step, const schedule::StageGraph& graph) {
  for (const StepEvents& s : analysis::StepsOf(timeline))
    if (s.step == step) return Walk(timeline, s, graph).Run();
  return {};
}

std::vector<PathShare> Shares(const Timeline& timeline, const std::vector<PathPiece>& path) {
  std::map<std::pair<std::string, int32_t>, PathShare> shares;
  for (const PathPiece& p : path) {
    const bool named =
        (p.kind == PathKind::work || p.kind == PathKind::collective || p.kind == PathKind::copy) && p.event >= 0;
    const std::string name =
        named ? analysis::ClassName(timeline.events[p.event].action.key) : std::string(Name(p.kind));
    PathShare& s = shares[{name, p.rank}];
    s.name = name;
    s.rank = p.rank;
    ++s.count;
    s.seconds += p.seconds();
  }
  std::vector<PathShare> list;
  for (auto& [key, s] : shares) list.push_back(std::move(s));
  std::stable_sort(list.begin(), list.end(),
                   [](const PathShare& a, const PathShare& b) { return a.seconds > b.seconds; });
  return list;
}

}  // namespace penstock::report
