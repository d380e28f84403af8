// From a cluster to TOML that reads back to it.
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/toml.h"
#include "cluster/file/fields.h"
#include "cluster/read.h"

namespace penstock::cluster {
namespace {

using config::TomlReal;
using config::TomlText;

// Lines of one table. Numbers are written as they come; then their sources, the most frequent one as that of the table.
class Printer {
 public:
  Printer(const Cluster& cluster, std::string_view section, std::string table)
      : cluster_(cluster), table_(std::move(table)), out_(fmt::format("\n[[{}]]\n", section)) {}

  void Line(std::string_view key, const std::string& value) { out_ += fmt::format("{} = {}\n", key, value); }

  void Numbers(const Fields& fields) {
    for (const NumberField& field : fields.numbers) {
      std::visit(
          [&](const auto* value) {
            if (!field.required && *value == 0 && !cluster_.sources.contains(table_ + "." + field.key)) return;
            if constexpr (std::is_same_v<decltype(value), const double*>)
              Line(field.key, TomlReal(*value));
            else
              Line(field.key, fmt::format("{}", *value));
            Sourced(field.key);
          },
          field.value);
    }
    for (const CurveField& field : fields.curves) {
      if (field.curve->points().empty()) continue;
      std::vector<std::string> points;
      for (const auto& p : field.curve->points())
        points.push_back(fmt::format("[{}, {}]", TomlReal(p.size), TomlReal(p.efficiency)));
      Line(field.key, fmt::format("[{}]", fmt::join(points, ", ")));
      Sourced(field.key);
    }
  }

  void Flops(const Device& device) {
    std::vector<std::string> peaks;
    for (const auto& [precision, rate] : device.flops_per_second) {
      peaks.push_back(fmt::format("{} = {}", precision, TomlReal(rate)));
      Sourced("flops_per_second." + precision);
    }
    Line("flops_per_second", fmt::format("{{ {} }}", fmt::join(peaks, ", ")));
  }

  std::string Finish() {
    std::map<std::string, int> uses;
    for (const auto& [key, source] : sources_) ++uses[source];
    const auto common =
        std::max_element(uses.begin(), uses.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (common != uses.end()) Line("source", TomlText(common->first));
    for (const auto& [key, source] : sources_)
      if (source != common->first) Line("sources." + TomlText(key), TomlText(source));
    return std::move(out_);
  }

 private:
  void Sourced(const std::string& key) {
    const auto found = cluster_.sources.find(table_ + "." + key);
    PENSTOCK_CHECK(found != cluster_.sources.end() && !found->second.empty(), "cluster '{}': {}.{} has no source",
                   cluster_.name, table_, key);
    sources_.emplace_back(key, found->second);
  }

  const Cluster& cluster_;
  std::string table_;
  std::string out_;
  std::vector<std::pair<std::string, std::string>> sources_;
};

struct Layout {
  std::vector<int64_t> counts;       // by type, when types follow one another in order; else empty
  std::vector<std::string> pattern;  // else: the shortest list that repeats to the whole
};

Layout LayoutOf(const Cluster& cluster) {
  const std::vector<int32_t>& types = cluster.device_of;
  Layout layout;
  if (types.empty()) return layout;
  const size_t n = types.size();
  layout.counts.assign(cluster.devices.size(), 0);
  for (const int32_t type : types) ++layout.counts.at(static_cast<size_t>(type));
  if (std::is_sorted(types.begin(), types.end())) return layout;
  layout.counts.clear();
  size_t period = 1;
  const auto repeats = [&](size_t p) {
    return n % p == 0 && std::equal(types.begin() + static_cast<std::ptrdiff_t>(p), types.end(), types.begin());
  };
  while (!repeats(period)) ++period;
  for (size_t i = 0; i < period; ++i)
    layout.pattern.push_back(TomlText(cluster.devices[static_cast<size_t>(types[i])].name));
  return layout;
}

}  // namespace

std::string PrintCluster(const Cluster& cluster) {
  const Layout layout = LayoutOf(cluster);
  std::string out =
      fmt::format("[cluster]\nname = {}\nsummary = {}\n", TomlText(cluster.name), TomlText(cluster.summary));
  if (!cluster.devices.empty() && !cluster.devices[0].price_currency.empty())
    out += fmt::format("currency = {}\n", TomlText(cluster.devices[0].price_currency));
  if (cluster.calibrated) out += "calibrated = true\n";
  if (!layout.pattern.empty()) out += fmt::format("layout = [{}]\n", fmt::join(layout.pattern, ", "));

  for (size_t t = 0; t < cluster.devices.size(); ++t) {
    Device device = cluster.devices[t];  // the fields point to variables
    Printer printer(cluster, "device", TableName(device));
    printer.Line("name", TomlText(device.name));
    if (!device.summary.empty()) printer.Line("summary", TomlText(device.summary));
    if (!layout.counts.empty()) printer.Line("count", fmt::format("{}", layout.counts[t]));
    printer.Flops(device);
    printer.Numbers(FieldsOf(device));
    out += printer.Finish();
  }
  for (Level level : cluster.levels) {
    Printer printer(cluster, "level", TableName(level));
    printer.Line("name", TomlText(level.name));
    printer.Numbers(FieldsOf(level));
    out += printer.Finish();
  }
  for (PairLink pair : cluster.overrides) {
    Printer printer(cluster, "override", TableName(pair));
    printer.Line("from", fmt::format("{}", pair.from));
    printer.Line("to", fmt::format("{}", pair.to));
    printer.Numbers(FieldsOf(pair));
    out += printer.Finish();
  }
  return out;
}

}  // namespace penstock::cluster
