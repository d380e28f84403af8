// Emulated ranks against the simulator: does a schedule take as long on threads that wait and wake up as the replay of
// the same schedule with the same prices says? Every builder on 4, 8 and 16 ranks, without and with a latency of half a
// forward. Median of five; exit status 1 when a ratio is off by more than 5 %. Times are asleep: what is measured is
// the executor, the communicator and the kernel's wake-ups, so a busy machine shows.
//   build/emulated_bench [BUILDER [MILLISECONDS OF THE SHORTEST ACTION]]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/registry.h"
#include "runtime/emulate.h"
#include "schedule/builder.h"
#include "schedule/lower.h"
#include "simulate/list_engine.h"

namespace penstock {
namespace {

constexpr int kRepeats = 5;
constexpr double kBound = 0.05;

int Run(const std::string& only, double shortest) {
  int bad = 0, cases = 0;
  double worst = 1;
  fmt::print("emulated against simulated makespan, in forwards of a position; shortest action {:.1f} ms\n",
             1e3 * shortest);
  fmt::print("{:18} {:>5} {:>4} {:>10} {:>10} {:>8}   {}\n", "builder", "ranks", "hop", "simulated", "emulated",
             "ratio", "lowest .. highest");
  for (const auto& [name, builder] : Registry<schedule::Builder>::All()) {
    if (!only.empty() && name != only) continue;
    for (const int ranks : {4, 8, 16}) {
      for (const Rational& hop : {Rational(0), Rational(1, 2)}) {
        schedule::LowerSpec spec;
        spec.pipeline = ranks;
        spec.chunks = builder.default_chunks;
        spec.micro_batches = 2 * ranks;
        const schedule::Schedule s = schedule::Lower(builder, spec);
        schedule::UniformCosts costs = schedule::UniformCosts::PerRank(1, 1, 1, spec.chunks);
        costs.hop = hop;
        const schedule::UniformSeconds seconds(costs);
        const double simulated = simulate::ReplayInOrder<double>(s, seconds).makespan;
        std::vector<double> ratios;
        for (int i = 0; i < kRepeats; ++i)
          ratios.push_back(runtime::MakespanOf(runtime::EmulateSteps(s, seconds, {.shortest = shortest})) / simulated);
        std::sort(ratios.begin(), ratios.end());
        const double ratio = ratios[kRepeats / 2];
        const bool off = std::abs(ratio - 1) > kBound;
        fmt::print("{:18} {:5} {:>4} {:10.2f} {:10.2f} {:8.4f}   {:.4f} .. {:.4f}{}\n", name, ranks, hop.ToString(),
                   simulated, ratio * simulated, ratio, ratios.front(), ratios.back(), off ? "   off" : "");
        std::fflush(stdout);
        bad += off ? 1 : 0;
        ++cases;
        if (std::abs(ratio - 1) > std::abs(worst - 1)) worst = ratio;
      }
    }
  }
  fmt::print("{} cases, {} off by more than {:.0f} %, the worst ratio is {:.4f}\n", cases, bad, 100 * kBound, worst);
  return bad == 0 && cases > 0 ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  return penstock::Run(argc > 1 ? argv[1] : "", argc > 2 ? std::max(0.1, std::atof(argv[2])) * 1e-3 : 4e-3);
}
