#include "report/timeline_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_depth.h"
#include "base/nearest.h"
#include "report/json_text.h"
#include "schedule/operators.h"

namespace penstock::report {
namespace {

using schedule::Action;
using schedule::Event;
using schedule::MemoryEvent;
using schedule::Timeline;
using Json = nlohmann::json;

constexpr std::string_view kMagic = "penstock timeline";
constexpr int kVersion = 1;
constexpr int kMaxRanks = 1 << 20;
constexpr std::array<std::string_view, 4> kProvenanceNames = {"measured", "predicted", "emulated", "extrapolated"};

class Writer {
 public:
  void Head(const Timeline& t) {
    Append("{{\"magic\":\"{}\",\"version\":{},\"title\":{},\"num_ranks\":{}}}\n", kMagic, kVersion, JsonString(t.title),
           t.num_ranks);
  }
  void Write(const Event& e) {
    const schedule::Key& k = e.action.key;
    Append("{{\"rank\":{},\"index\":{},\"kind\":\"{}\"", e.rank, e.index, schedule::Name(k.kind));
    if (k.op != schedule::kNoOp) Append(",\"operator\":{}", JsonString(schedule::OpName(k.op)));
    Field("component", k.unit.component, 0);
    Append(",\"stage\":{}", k.unit.stage);
    Field("micro_batch", k.micro_batch, -1);
    Field("part", k.part, 0);
    Field("round", k.round, 0);
    Field("step_offset", k.step, 0);
    Field("peer_or_group", e.action.peer_or_group, -1);
    Field("guard", e.action.guard, -1);
    Append(",\"stream\":\"{}\"", schedule::Name(e.action.stream));
    Field("step", e.step, 0);
    Append(",\"start\":{},\"end\":{}", JsonNumber(e.start), JsonNumber(e.end));
    if (e.waited != 0) Append(",\"waited\":{}", JsonNumber(e.waited));
    Field("bytes", e.bytes, 0);
    Append(",\"provenance\":\"{}\"}}\n", Name(e.provenance));
  }
  void Write(const MemoryEvent& e) {
    Append("{{\"rank\":{},\"time\":{},\"class\":\"{}\"", e.rank, JsonNumber(e.time), penstock::Name(e.buffer_class));
    if (e.tier != Tier::device) Append(",\"tier\":\"{}\"", penstock::Name(e.tier));
    Append(",\"live_bytes\":{}}}\n", e.live_bytes);
  }
  std::string Take() { return std::move(out_); }

 private:
  template <typename... Args>
  void Append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void Field(std::string_view name, int64_t value, int64_t default_value) {
    if (value != default_value) Append(",\"{}\":{}", name, value);
  }
  std::string out_;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  Timeline Run() {
    Timeline t;
    for (size_t at = 0; at < text_.size();) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      ++line_number_;
      const std::string_view text = text_.substr(at, end - at);
      at = end + 1;
      if (text.empty()) continue;
      if (IsNestedDeeper(text)) Fail("this line is nested too deep");
      line_ = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (!line_.is_object()) Fail("this line is not a JSON object");
      if (!seen_head_)
        Head(t);
      else if (line_.contains("live_bytes"))
        t.memory.push_back(Memory(t));
      else
        t.events.push_back(OneEvent(t));
    }
    if (!seen_head_)
      Fail("there is nothing in it; a timeline starts with {\"magic\":\"penstock timeline\",\"version\":1, ...}");
    return t;
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw UserError(fmt::format("{}:{}: {}", source_, line_number_, message));
  }
  int64_t Integer(const char* name, int64_t low, int64_t high, std::optional<int64_t> fallback = {}) const {
    const auto it = line_.find(name);
    if (it == line_.end()) {
      if (fallback) return *fallback;
      Fail(fmt::format("'{}' is missing", name));
    }
    // Above 2^63 - 1 the library keeps it as unsigned.
    const bool fits =
        it->is_number_integer() && (!it->is_number_unsigned() || it->get<uint64_t>() <= uint64_t{INT64_MAX});
    if (!fits || it->get<int64_t>() < low || it->get<int64_t>() > high)
      Fail(fmt::format("'{}' is not an integer in {}..{}", name, low, high));
    return it->get<int64_t>();
  }
  double Number(const char* name, std::optional<double> fallback = {}) const {
    const auto it = line_.find(name);
    if (it == line_.end() && fallback) return *fallback;
    if (it == line_.end() || !it->is_number()) Fail(fmt::format("'{}' is not a number", name));
    return it->get<double>();
  }
  std::string Text(const char* name) const {
    const auto it = line_.find(name);
    if (it == line_.end() || !it->is_string()) Fail(fmt::format("'{}' is not a string", name));
    return it->get<std::string>();
  }
  template <typename Names>
  int Index(const char* name, const Names& names) const {
    const std::string word = Text(name);
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == word) return static_cast<int>(i);
    Fail(fmt::format("{} is no {}{}", JsonString(word.substr(0, 40)), name,
                     DidYouMean(word.substr(0, 40), {names.begin(), names.end()})));
  }

  void Head(Timeline& t) {
    if (line_.value("magic", Json()) != kMagic)
      Fail("this is not a timeline: its first line has no \"magic\":\"penstock timeline\"");
    if (const int64_t version = Integer("version", 1, INT32_MAX); version != kVersion)
      Fail(fmt::format("timeline format version {}; this build reads version {}", version, kVersion));
    t.title = Text("title");
    t.num_ranks = static_cast<int32_t>(Integer("num_ranks", 0, kMaxRanks));
    seen_head_ = true;
  }

  Event OneEvent(const Timeline& t) const {
    Event e;
    e.rank = static_cast<int32_t>(Integer("rank", 0, t.num_ranks - 1));
    e.index = static_cast<int32_t>(Integer("index", 0, INT32_MAX));
    schedule::Key& k = e.action.key;
    k.kind = static_cast<schedule::Kind>(Index("kind", schedule::kKindNames));
    if (line_.contains("operator")) k.op = Operator(Text("operator"));
    k.unit.component = static_cast<uint8_t>(Integer("component", 0, UINT8_MAX, 0));
    k.unit.stage = static_cast<uint16_t>(Integer("stage", 0, UINT16_MAX));
    k.micro_batch = static_cast<int32_t>(Integer("micro_batch", -1, INT32_MAX, -1));
    k.part = static_cast<int16_t>(Integer("part", INT16_MIN, INT16_MAX, 0));
    k.round = static_cast<int8_t>(Integer("round", INT8_MIN, INT8_MAX, 0));
    k.step = static_cast<int8_t>(Integer("step_offset", INT8_MIN, INT8_MAX, 0));
    e.action.peer_or_group = static_cast<int32_t>(Integer("peer_or_group", -1, INT32_MAX, -1));
    e.action.guard = static_cast<int16_t>(Integer("guard", -1, INT16_MAX, -1));
    e.action.stream = static_cast<schedule::Stream>(Index("stream", schedule::kStreamNames));
    e.step = static_cast<int32_t>(Integer("step", INT32_MIN, INT32_MAX, 0));
    e.start = Number("start");
    e.end = Number("end");
    if (e.end < e.start) Fail("'end' is before 'start'");
    e.waited = Number("waited", 0.0);
    e.bytes = Integer("bytes", 0, INT64_MAX, 0);
    e.provenance = static_cast<schedule::Provenance>(Index("provenance", kProvenanceNames));
    return e;
  }

  schedule::OpId Operator(const std::string& name) const {
    if (!Registry<schedule::Operator>::Has(name))
      Fail(fmt::format("{} is no operator of this build{}", JsonString(name.substr(0, 40)),
                       DidYouMean(name.substr(0, 40), Registry<schedule::Operator>::Names())));
    return schedule::FindOp(name);
  }

  MemoryEvent Memory(const Timeline& t) const {
    MemoryEvent e;
    e.rank = static_cast<int32_t>(Integer("rank", 0, t.num_ranks - 1));
    e.time = Number("time");
    e.buffer_class = static_cast<BufferClass>(Index("class", kBufferClassNames));
    if (line_.contains("tier")) e.tier = static_cast<Tier>(Index("tier", kTierNames));
    e.live_bytes = Integer("live_bytes", 0, INT64_MAX);
    return e;
  }

  const std::string_view text_;
  const std::string source_;
  int line_number_ = 0;
  bool seen_head_ = false;
  Json line_;
};

}  // namespace

std::string_view Name(schedule::Provenance provenance) { return kProvenanceNames[static_cast<size_t>(provenance)]; }

std::string PrintTimeline(const Timeline& timeline) {
  Writer writer;
  writer.Head(timeline);
  for (const Event& e : timeline.events) {
    PENSTOCK_CHECK(std::isfinite(e.start) && std::isfinite(e.end) && std::isfinite(e.waited),
                   "an event without a time");
    writer.Write(e);
  }
  for (const MemoryEvent& e : timeline.memory) {
    PENSTOCK_CHECK(std::isfinite(e.time), "a memory event without a time");
    writer.Write(e);
  }
  return writer.Take();
}

Timeline ParseTimeline(std::string_view text, std::string_view source) { return Reader(text, source).Run(); }

void SaveTimeline(const std::string& path, const Timeline& timeline, bool overwrite, FileSystem& files) {
  WriteFileAtomically(path, PrintTimeline(timeline), overwrite, files);
}

Timeline LoadTimeline(const std::string& path, FileSystem& files) { return ParseTimeline(ReadFile(path, files), path); }

}  // namespace penstock::report
