#include "schedule/text/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "schedule/operators.h"

namespace penstock::schedule::text {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The ranks that run each stage. Factored by (replica, placement) pairs and positions, so that neither the number of
// micro-batches nor that of stages multiplies the number of ranks.
class RanksOfStages {
 public:
  explicit RanksOfStages(const Schedule& schedule) : s_(schedule) {
    const Route& route = s_.route;
    for (int m = 0; m < route.num_micro_batches(); ++m)
      ++micro_batches_[{route.replica_of[m], route.placement_of.empty() ? 0 : route.placement_of[m]}];
    for (const auto& [at, rank] : route.overrides) overrides_[at.first].push_back({at.second, rank});
  }

  std::vector<int32_t> Of(int stage) const {
    const Route& route = s_.route;
    std::map<int32_t, int> left;  // rank -> micro-batches that it runs
    for (const auto& [pair, count] : micro_batches_)
      left[pair.first * route.pipeline_size + route.placements[pair.second][stage]] += count;
    if (const auto it = overrides_.find(stage); it != overrides_.end()) {
      for (const auto& [m, rank] : it->second) {
        const auto& placement = route.placements[route.placement_of.empty() ? 0 : route.placement_of[m]];
        --left[route.replica_of[m] * route.pipeline_size + placement[stage]];
        ++left[rank];
      }
    }
    std::vector<int32_t> ranks;
    for (const auto& [rank, count] : left)
      if (count > 0) ranks.push_back(rank);
    return ranks;
  }

  // Stages with equal keys have equal ranks.
  std::vector<int> KeyOf(int stage) const {
    std::vector<int> key;
    for (const auto& placement : s_.route.placements) key.push_back(placement[stage]);
    if (overrides_.count(stage) != 0) key.push_back(-1 - stage);
    return key;
  }
  int64_t pairs() const { return static_cast<int64_t>(micro_batches_.size()); }

 private:
  const Schedule& s_;
  std::map<std::pair<int32_t, int>, int> micro_batches_;
  std::map<int, std::vector<std::pair<int, int>>> overrides_;
};

}  // namespace

std::optional<Kind> KindOfLetter(char letter) {
  for (int k = 0; k < kKindCount; ++k)
    if (letter != '\0' && LetterOf(static_cast<Kind>(k)) == letter) return static_cast<Kind>(k);
  return std::nullopt;
}

std::string Quote(std::string_view raw) {
  std::string quoted = "\"";
  for (const char c : raw) {
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\r':
        quoted += "\\r";
        break;
      case '\t':
        quoted += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        else
          quoted += c;
    }
  }
  return quoted + '"';
}

std::optional<std::string> Unquote(std::string_view quoted) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"') return std::nullopt;
  const std::string_view body = quoted.substr(1, quoted.size() - 2);
  std::string raw;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '"') return std::nullopt;
    if (body[i] != '\\') {
      raw += body[i];
      continue;
    }
    if (++i == body.size()) return std::nullopt;
    switch (body[i]) {
      case '"':
        raw += '"';
        break;
      case '\\':
        raw += '\\';
        break;
      case 'n':
        raw += '\n';
        break;
      case 'r':
        raw += '\r';
        break;
      case 't':
        raw += '\t';
        break;
      case 'x': {
        const int high = i + 1 < body.size() ? HexDigit(body[i + 1]) : -1;
        const int low = i + 2 < body.size() ? HexDigit(body[i + 2]) : -1;
        if (high < 0 || low < 0) return std::nullopt;
        raw += static_cast<char>(high * 16 + low);
        i += 2;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return raw;
}

bool IsWord(std::string_view raw) {
  if (raw.empty() || raw.size() > 200 || !IsLetter(raw[0])) return false;
  return std::all_of(raw.begin(), raw.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view("_./-[]()%").find(c) != std::string_view::npos;
  });
}

std::string PrintIntegers(const std::vector<int32_t>& values, char separator) {
  std::string out;
  for (size_t i = 0; i < values.size();) {
    size_t equal = i + 1, rising = i + 1;
    while (equal < values.size() && values[equal] == values[i]) ++equal;
    while (rising < values.size() && values[rising] == int64_t{values[rising - 1]} + 1) ++rising;
    if (i != 0) out += separator;
    if (equal - i >= 3) {
      out += fmt::format("{}*{}", values[i], equal - i);
      i = equal;
    } else if (rising - i >= 3) {
      out += fmt::format("{}..{}", values[i], values[rising - 1]);
      i = rising;
    } else {
      out += fmt::format("{}", values[i]);
      ++i;
    }
  }
  return out;
}

std::optional<int> EdgeOfMessage(const StageGraph& graph, const Key& key) {
  static const OpId activation = FindOp(ops::kActivation), gradient = FindOp(ops::kGradient);
  if ((key.kind != Kind::send && key.kind != Kind::recv) || key.unit.stage >= graph.num_stages()) return std::nullopt;
  if (key.op != activation && key.op != gradient) return std::nullopt;
  const auto& edges = key.op == activation ? graph.outputs(key.unit.stage) : graph.inputs(key.unit.stage);
  return edges.size() == 1 ? std::optional<int>(edges[0]) : std::nullopt;
}

GroupTable::GroupTable(std::vector<std::vector<int32_t>>& groups) : groups_(groups) {
  for (size_t g = 0; g < groups_.size(); ++g) index_.emplace(groups_[g], static_cast<int32_t>(g));
}

int32_t GroupTable::Of(const std::vector<int32_t>& ranks) {
  const auto [it, added] = index_.emplace(ranks, size());
  if (added) groups_.push_back(ranks);
  return it->second;
}

void GroupTable::Add(std::vector<int32_t> ranks) {
  index_.emplace(ranks, size());
  groups_.push_back(std::move(ranks));
}

Holders DefaultHolders(const Schedule& schedule, const std::vector<std::vector<uint16_t>>& shared, GroupTable& groups) {
  Holders holders;
  if (schedule.num_micro_batches() == 0 || schedule.route.placements.empty()) return holders;
  const RanksOfStages ranks_of(schedule);
  std::map<std::vector<int>, int32_t> group_of_key;
  std::vector<int32_t> group_of_stage(schedule.num_stages());
  for (int s = 0; s < schedule.num_stages(); ++s) {
    auto key = ranks_of.KeyOf(s);
    auto it = group_of_key.find(key);
    if (it == group_of_key.end()) {
      if (static_cast<int64_t>(group_of_key.size() + 1) * ranks_of.pairs() > kMaxExpanded)
        throw UserError("the holders that follow from this route are more than {} ranks; write 'unit' lines",
                        kMaxExpanded);
      it = group_of_key.emplace(std::move(key), groups.Of(ranks_of.Of(s))).first;
    }
    group_of_stage[s] = it->second;
    ParameterUnit unit;
    unit.unit.stage = static_cast<uint16_t>(s);
    unit.uses = {{static_cast<uint16_t>(s), it->second}};
    unit.group = it->second;
    holders.units.push_back(std::move(unit));
  }
  int64_t shared_ranks = 0;
  for (const auto& stages : shared) {
    ParameterUnit unit;
    unit.unit.stage = static_cast<uint16_t>(holders.units.size());
    std::set<int32_t> all;
    for (const uint16_t s : stages) {
      unit.uses.push_back({s, group_of_stage[s]});
      const auto& ranks = groups.ranks(group_of_stage[s]);
      shared_ranks += static_cast<int64_t>(ranks.size());
      if (shared_ranks > kMaxExpanded)
        throw UserError("the holders of the shared parameters are more than {} ranks; write 'unit' lines",
                        kMaxExpanded);
      all.insert(ranks.begin(), ranks.end());
    }
    unit.group = groups.Of({all.begin(), all.end()});
    holders.units.push_back(std::move(unit));
  }
  return holders;
}

}  // namespace penstock::schedule::text
