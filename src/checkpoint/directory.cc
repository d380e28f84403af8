#include "checkpoint/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace penstock::checkpoint {

std::string StepName(int64_t step) { return fmt::format("step-{:08}", step); }

std::string ShardName(int shard, int shards) {
  return fmt::format("shard-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

EntryKind KindOf(const std::string& name) {
  const auto begins = [](std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start;
  };
  std::string_view rest = name;
  if (begins(rest, "latest.")) return EntryKind::temporary;
  if (!begins(rest, "step-")) return EntryKind::other;
  rest.remove_prefix(5);
  const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits < 8) return EntryKind::other;
  rest.remove_prefix(digits);
  if (rest.empty()) return EntryKind::published;
  if (begins(rest, ".replaced-")) return EntryKind::replaced;
  if (begins(rest, ".tmp-")) return EntryKind::temporary;
  return EntryKind::other;
}

std::vector<std::string> EntriesOfKind(const std::string& directory, EntryKind kind, FileSystem& files) {
  std::vector<std::string> names;
  for (const std::string& name : files.List(directory))
    if (KindOf(name) == kind) names.push_back(name);
  return names;
}

}  // namespace penstock::checkpoint
