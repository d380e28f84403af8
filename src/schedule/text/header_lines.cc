// src/schedule/text/header_lines.cc
//
// The magic line and the lines of the head, one method per key that says more than a number or a list.
#include <algorithm>
#include <limits>

#include "schedule/text/parser.h"

namespace penstock::schedule::text {

void Parser::ParseMagic() {
  if (words_.size() < 2 || words_[0] != "penstock" || words_[1] != "schedule")
    Fail("this is not a schedule: its first line has to be '{} {}', not {}", kMagic, kVersion, Show(words_[0]));
  next_ = 2;
  const int64_t version = Integer(Next("version"), "version", 1, std::numeric_limits<int32_t>::max());
  if (version != kVersion) Fail("schedule format version {}; this build reads version {}", version, kVersion);
  ExpectEnd();
  seen_magic_ = true;
}

void Parser::ParseHeader(std::string_view key) {
  if (key == "name") {
    Once(lines_.name);
    s_.name = Text(Next("the name"), "name");
  } else if (key == "ranks") {
    Once(lines_.ranks);
    num_ranks_ = static_cast<int>(OnlyInteger(0, kMaxRanks));
  } else if (key == "stages") {
    Once(lines_.stages);
    num_stages_ = static_cast<int>(OnlyInteger(0, kMaxStages));
  } else if (key == "edge") {
    ParseEdge();
  } else if (key == "micro-batches") {
    Once(lines_.micro_batches);
    micro_batches_ = static_cast<int>(OnlyInteger(0, kMaxMicroBatches));
  } else if (key == "pipeline") {
    Once(lines_.pipeline);
    s_.route.pipeline_size = static_cast<int>(OnlyInteger(1, kMaxRanks));
  } else if (key == "placement") {
    ParsePlacement();
  } else if (key == "replicas") {
    Once(lines_.replicas);
    replicas_ = static_cast<int>(OnlyInteger(1, kMaxRanks));
  } else if (key == "copies") {
    Once(lines_.copies);
    s_.copies = static_cast<int32_t>(OnlyInteger(1, kMaxRanks));
  } else if (key == "replica-of") {
    Once(lines_.replicas);
    s_.route.replica_of = IntegersToEnd<int32_t>("replica", 0, kMaxRanks - 1);
    explicit_replicas_ = true;
  } else if (key == "placement-of") {
    Once(lines_.placement_of);
    s_.route.placement_of = IntegersToEnd<uint8_t>("placement", 0, kMaxPlacements);
    if (s_.route.placement_of.empty()) Fail("the placements are missing at the end of the line");
  } else if (key == "override") {
    ParseOverride();
  } else if (key == "contract") {
    Once(lines_.contract);
    while (!Done()) ParseContractWord(Next("a word"));
  } else if (key == "recompute") {
    Once(lines_.recompute);
    if (words_.size() == 2 && words_[1] == "none")
      next_ = 2;
    else
      recompute_ = IntegersToEnd<int32_t>("stage", 0, kMaxStages - 1);
  } else if (key == "stage-options") {
    Once(lines_.stage_options);
    Expect("none");
  } else if (key == "group") {
    ParseGroup();
  } else if (key == "unit") {
    ParseUnitLine();
  } else if (key == "shared") {
    if (lines_.shared == kUnset) lines_.shared = line_;
    shared_.push_back(IntegersToEnd<uint16_t>("stage", 0, kMaxStages - 1));
    if (shared_.back().empty()) Fail("the stages that share a parameter are missing at the end of the line");
  } else if (key == "size") {
    ParseSize();
  } else if (key == "edge-table") {
    Once(lines_.edge_table);
    while (!Done()) s_.edges.push_back(ParseRef(Next("an action")));
  } else {
    const bool action =
        AsCompact(key) || std::find(kKindNames.begin(), kKindNames.end(), SplitAt(key, ':').first) != kKindNames.end();
    if (action) Fail("action {} stands before the first 'rank' line", Show(key));
    Fail("{} is no key of a schedule's head{}", Show(key), Nearest(key, kHeaderKeys));
  }
}

void Parser::Once(int& line_of) const {
  if (line_of != kUnset) Fail("{} is said a second time; the first is in line {}", Show(words_[0]), line_of);
  line_of = line_;
}

void Parser::ParseEdge() {
  if (lines_.edge == kUnset) lines_.edge = line_;
  if (words_.size() == 2 && words_[1] == "none") {
    if (!edges_.empty()) Fail("'edge none' after an edge");
    next_ = 2;
    no_edges_ = true;
    return;
  }
  if (no_edges_) Fail("an edge after 'edge none'");
  StageEdge edge;
  edge.from = static_cast<uint16_t>(Integer(Next("the stage before the edge"), "stage", 0, kMaxStages - 1));
  Expect("->");
  edge.to = static_cast<uint16_t>(Integer(Next("the stage after the edge"), "stage", 0, kMaxStages - 1));
  if (!Done()) edge.boundary = Text(Next("the boundary"), "boundary");
  edges_.push_back(std::move(edge));
}

void Parser::ParsePlacement() {
  if (lines_.placement == kUnset) lines_.placement = line_;
  if (words_.size() == 2 && words_[1] == "none") {
    next_ = 2;
    no_placement_ = true;
    return;
  }
  if (static_cast<int>(placements_.size()) == kMaxPlacements + 1) Fail("more than {} placements", kMaxPlacements + 1);
  Placement placement;
  placement.line = line_;
  const std::string_view first = Next("the placement");
  if (first[0] >= '0' && first[0] <= '9') {
    next_ = 1;
    placement.positions = IntegersToEnd<int>("position", 0, kMaxRanks - 1);
  } else {
    placement.name = PlacementNames()[IndexOf(PlacementNames(), first, "a placement")];
  }
  placements_.push_back(std::move(placement));
}

void Parser::ParseOverride() {
  if (lines_.override_line == kUnset) lines_.override_line = line_;
  const auto [stage, micro_batch] = SplitAt(Next("STAGE.MICRO-BATCH"), '.');
  const std::pair<int, int> at(Integer(stage, "stage", 0, kMaxStages - 1),
                               Integer(micro_batch, "micro-batch", 0, kMaxMicroBatches - 1));
  Expect("->");
  const int rank = static_cast<int>(Integer(Next("the rank"), "rank", 0, kMaxRanks - 1));
  if (!s_.route.overrides.emplace(at, rank).second) Fail("{}.{} is routed a second time", at.first, at.second);
}

void Parser::ParseContractWord(std::string_view word) {
  const auto [key, value] = SplitAt(word, '=');
  Contract& c = s_.contract;
  if (key == "coverage") {
    c.coverage = static_cast<CoverageRule>(IndexOf(kCoverageRuleNames, value, "a coverage rule"));
  } else if (key == "staleness") {
    c.staleness = static_cast<int>(Integer(value, "staleness", 0, std::numeric_limits<int>::max()));
  } else if (key == "equivalence") {
    c.equivalence = static_cast<Equivalence>(IndexOf(kEquivalenceNames, value, "an equivalence"));
  } else if (key == "deadlock-free") {
    c.deadlock_free.fill(false);
    if (value == "none") return;
    if (value.empty()) Fail("the transports are missing after 'deadlock-free='; 'none' is one way to say it");
    for (std::string_view rest = value; !rest.empty();) {
      const auto [name, more] = SplitAt(rest, ',');
      c.deadlock_free[IndexOf(kTransportNames, name, "a transport")] = true;
      rest = more;
    }
  } else if (key == "reason") {
    if (value.empty()) Fail("the reason is missing after 'reason='");
    c.reason = Text(value, "reason");
  } else {
    Fail("{} is no word of a contract{}", Show(key),
         Nearest(key, {"coverage", "staleness", "equivalence", "deadlock-free", "reason"}));
  }
}

void Parser::ParseGroup() {
  const int64_t index = Integer(Next("the number of the group"), "group", 0, std::numeric_limits<int32_t>::max());
  if (index != groups_.size())
    Fail("group {} follows group {}; groups are numbered 0, 1, ...", index, groups_.size() - 1);
  Expect("=");
  groups_.Add(GroupRanks(IntegersToEnd<int32_t>("rank", 0, kMaxRanks - 1)));
  group_lines_.push_back(line_);
}

void Parser::ParseUnitLine() {
  if (lines_.unit == kUnset) lines_.unit = line_;
  if (words_.size() == 2 && words_[1] == "none") {
    if (!s_.holders.units.empty()) Fail("'unit none' after a unit");
    next_ = 2;
    no_units_ = true;
    return;
  }
  if (no_units_) Fail("a unit after 'unit none'");
  ParameterUnit unit;
  unit.unit = ParseUnit(Next("the unit"));
  if (unit.unit.stage != s_.holders.units.size())
    Fail("unit {} stands where unit {} is due; units are numbered 0, 1, ...", unit.unit.stage, s_.holders.units.size());
  while (!Done()) {
    const std::string_view word = Next("a word");
    const auto [key, value] = SplitAt(word, '=');
    if (key == "form") {
      unit.form = static_cast<BufferForm>(IndexOf(kBufferFormNames, value, "a form"));
    } else if (key == "holders") {
      unit.group = ParseGroupIndex(value);
    } else if (key == "use") {
      const auto [stage, group] = SplitAt(value, '@');
      ParameterUse use;
      use.stage = static_cast<uint16_t>(Integer(stage, "stage", 0, kMaxStages - 1));
      if (!group.empty()) use.group = ParseGroupIndex(group);
      unit.uses.push_back(use);
    } else {
      Fail("{} is no word of a unit{}", Show(key), Nearest(key, {"form", "holders", "use"}));
    }
  }
  s_.holders.units.push_back(std::move(unit));
  unit_lines_.push_back(line_);
}

void Parser::ParseSize() {
  if (s_.sizes.size() > std::numeric_limits<SizeId>::max())
    Fail("more than {} sizes", std::numeric_limits<SizeId>::max());
  Size size;
  size.symbol = Text(Next("the symbol"), "symbol");
  size.upper_bound = Integer(Next("the upper bound in bytes"), "upper bound", std::numeric_limits<int64_t>::min(),
                             std::numeric_limits<int64_t>::max());
  size_ids_.emplace(size.symbol, static_cast<SizeId>(s_.sizes.size()));
  s_.sizes.push_back(std::move(size));
}

}  // namespace penstock::schedule::text
