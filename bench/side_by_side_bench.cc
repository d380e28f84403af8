// Two rank threads on two cores: by how much is each slowed against running alone? Exit status 1 above 10 %.
//   build/side_by_side_bench [PAIRS]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "runtime/environment.h"
#include "session/run/side_by_side.h"

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  penstock::runtime::PrepareProcess(false);
  penstock::session::SideBySide result = penstock::session::MeasureSideBySide(pairs, 4);
  std::sort(result.ratios.begin(), result.ratios.end());
  std::fputs(
      fmt::format("two transformer blocks (hidden 256, 4 x 256 tokens), forward + backward, fp32, one thread per rank\n"
                  "alone {:.1f} ms, two ranks at once {:.1f} ms each; ratio of {} interleaved pairs: min {:.3f}, "
                  "median {:.3f}, max {:.3f}\n",
                  1e3 * result.alone, 1e3 * result.together, pairs, result.ratios.front(), 1 + result.slowdown,
                  result.ratios.back())
          .c_str(),
      stdout);
  return result.slowdown < 0.10 ? 0 : 1;
}
