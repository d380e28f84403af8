// Does a plan fit this machine: where the limit comes from, the refusal, and the table that `check` prints.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "base/file.h"
#include "base/units.h"
#include "session/plan.h"

namespace penstock::session {
namespace {

constexpr size_t kMaxRows = 16;

// The first integer of a small file of the kernel; -1 when there is none ("max", no such file).
int64_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

int64_t PhysicalMemory() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kib = 0;
    if (words >> name >> kib && name == "MemTotal:") return kib * 1024;
  }
  return 0;
}

// The smallest limit of the process's control group and those above it (version 2), or of the group the process sees as
// its own (version 1; inside a container that is the root of what is mounted). -1: none.
int64_t ControlGroupLimit() {
  int64_t smallest = -1;
  const auto consider = [&smallest](int64_t limit) {
    if (limit > 0 && (smallest < 0 || limit < smallest)) smallest = limit;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::", 0) != 0) continue;
    for (std::string path = line.substr(3); !path.empty() && path != "/"; path = path.substr(0, path.find_last_of('/')))
      consider(NumberIn("/sys/fs/cgroup" + path + "/memory.max"));
  }
  consider(NumberIn("/sys/fs/cgroup/memory.max"));
  consider(NumberIn("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  return smallest;
}

std::string WhatHelps(const std::string& largest, const Settings& s) {
  std::string help;
  const auto add = [&help](const std::string& text) { help += (help.empty() ? "" : "; ") + text; };
  const bool per_sample =
      largest == "activation" || largest == "workspace" || largest == "boundary" || largest == "message";
  if (per_sample && s.parallel.recompute != "full")
    add("parallel.recompute = \"full\" keeps only the inputs of a stage");
  if (per_sample && s.train.micro_batch > 1)
    add(fmt::format("a smaller train.micro_batch (now {})", s.train.micro_batch));
  if (per_sample && s.train.micro_batch == 1 && s.data.sequence > 1)
    add(fmt::format("a shorter data.sequence (now {})", s.data.sequence));
  if (s.parallel.data > 1)
    add(fmt::format("fewer ranks on this machine: each of the parallel.data = {} replicas keeps a whole copy",
                    s.parallel.data));
  if (!per_sample) add("a smaller model, or an optimizer that keeps less per parameter");
  add("a larger runtime.memory_limit, where there is more memory");
  return help;
}

}  // namespace

int64_t MachineMemory() {
  const int64_t physical = PhysicalMemory(), group = ControlGroupLimit();
  return group > 0 && (physical == 0 || group < physical) ? group : physical;
}

void RequireFits(const Plan& plan, const Settings& s) {
  const bool given = s.runtime.memory_limit > 0;
  const int64_t limit = given ? s.runtime.memory_limit : MachineMemory();
  const int64_t predicted = plan.memory.machine();
  if (limit == 0 || predicted <= limit) return;
  const int rank = plan.memory.largest_rank();
  const std::string largest = plan.memory.ranks[rank].LargestPart();
  throw DoesNotFit(
      "the plan needs about {} on this machine, and {} is {}. Largest rank: {} with {}, mostly {}. What would help: {}",
      FormatBytes(predicted), given ? "runtime.memory_limit" : "its memory", FormatBytes(limit), rank,
      FormatBytes(plan.memory.ranks[rank].total()), largest, WhatHelps(largest, s));
}

std::string DescribeMemory(const cost::MemoryEstimate& memory) {
  const auto bytes = [](const cost::RankMemory& r, BufferClass c) {
    return FormatBytes(r.at_peak[static_cast<size_t>(c)]);
  };
  std::string text = "memory, predicted peak of each rank and what it is made of\n";
  text += fmt::format("{:>4} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "rank", "peak", "parameter",
                      "optimizer", "gradient", "activation", "boundary", "workspace", "+ cached");
  for (size_t i = 0; i < std::min(kMaxRows, memory.ranks.size()); ++i) {
    const cost::RankMemory& r = memory.ranks[i];
    const int64_t crossing =
        r.at_peak[static_cast<size_t>(BufferClass::boundary)] + r.at_peak[static_cast<size_t>(BufferClass::message)];
    text += fmt::format("{:>4} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}\n", i, FormatBytes(r.peak()),
                        bytes(r, BufferClass::parameter), bytes(r, BufferClass::optimizer_state),
                        bytes(r, BufferClass::gradient), bytes(r, BufferClass::activation), FormatBytes(crossing),
                        FormatBytes(r.workspace), FormatBytes(r.cached));
  }
  if (memory.ranks.size() > kMaxRows) text += fmt::format(" ... and {} ranks more\n", memory.ranks.size() - kMaxRows);
  int64_t snapshot = 0;
  for (const cost::RankMemory& r : memory.ranks) snapshot = std::max(snapshot, r.snapshot);
  text += fmt::format(
      "this machine: {} for {} rank{} and {} for the process; loading a checkpoint adds a copy of a tensor, up to {} "
      "a rank, outside the step{}\n",
      FormatBytes(memory.machine()), memory.ranks.size(), memory.ranks.size() == 1 ? "" : "s",
      FormatBytes(memory.process),
      FormatBytes(std::max_element(memory.ranks.begin(), memory.ranks.end(),
                                   [](const auto& a, const auto& b) { return a.load_copy < b.load_copy; })
                      ->load_copy),
      snapshot == 0 ? ""
                    : fmt::format("; saving one adds a snapshot of up to {} a rank, which is in the peak "
                                  "(checkpoint.snapshot)",
                                  FormatBytes(snapshot)));
  return text;
}

}  // namespace penstock::session
