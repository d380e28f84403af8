// From TOML text to a checked cluster.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "cluster/file/fields.h"
#include "cluster/file/table.h"
#include "cluster/read.h"

namespace penstock::cluster {
namespace {

using config::Node;
using Kind = Node::Kind;

struct DeviceType {
  Device device;
  std::optional<int64_t> count;
  int64_t line = 0;
};

class Parser {
 public:
  Parser(const Node& root, const std::string& file) : faults_(file), root_(&root, "", 1, faults_) { out_.file = file; }

  Cluster Parse() {
    Head();
    for (const Node* node : Tables("device", true)) OneDevice(*node);
    for (const Node* node : Tables("level", false)) OneLevel(*node);
    for (const Node* node : Tables("override", false)) OneOverride(*node);
    root_.Finish();
    // What follows would only repeat what is wrong above.
    faults_.Throw();
    Lay();
    Overrides();
    faults_.Throw();
    return std::move(out_);
  }

 private:
  void Head() {
    const Node* node = root_.Find("cluster", true);
    Table table(node, "cluster", node == nullptr ? 1 : node->line, faults_);
    out_.name = table.Name("name");
    out_.summary = table.Text("summary", true);
    out_.calibrated = table.Bool("calibrated");
    currency_ = table.Text("currency", false);
    layout_ = table.Find("layout");
    table.Finish();
  }

  std::vector<const Node*> Tables(std::string_view key, bool required) {
    std::vector<const Node*> out;
    const Node* node = root_.Find(key, required);
    if (node == nullptr) return out;
    if (node->kind != Kind::kArray || node->items.empty()) {
      faults_.Add(node->line, fmt::format("'{0}' must be sections [[{0}]], in double brackets", key));
      return out;
    }
    for (const Node& item : node->items) out.push_back(&item);
    return out;
  }

  template <typename T>
  void RefuseTwice(const std::vector<T>& before, const std::string& name, std::string_view what, int64_t line) {
    for (const T& other : before)
      if (!name.empty() && other.name == name)
        faults_.Add(line, fmt::format("there are two {}s named '{}'; give them different names", what, name));
  }

  void OneDevice(const Node& node) {
    DeviceType type;
    Device& device = type.device;
    type.line = node.line;
    Table table(&node, "device", node.line, faults_);
    device.name = table.Name("name");
    table.SetName(TableName(device));
    device.summary = table.Text("summary", false);
    device.price_currency = currency_;
    type.count = table.Index("count", false, 1, kMaxDevices);
    device.flops_per_second = table.Flops();
    table.Read(FieldsOf(device));
    table.Sources(out_.sources);
    table.Finish();
    if (device.price_per_hour > 0 && currency_.empty())
      table.Fault("price_per_hour needs a currency; write currency = \"USD\" in [cluster]");
    RefuseTwice(out_.devices, device.name, "device", node.line);
    out_.devices.push_back(device);
    types_.push_back(std::move(type));
  }

  void OneLevel(const Node& node) {
    Level level;
    Table table(&node, "level", node.line, faults_);
    level.name = table.Name("name");
    table.SetName(TableName(level));
    table.Read(FieldsOf(level));
    table.Sources(out_.sources);
    table.Finish();
    RefuseTwice(out_.levels, level.name, "level", node.line);
    out_.levels.push_back(std::move(level));
  }

  void OneOverride(const Node& node) {
    PairLink pair;
    Table table(&node, "override", node.line, faults_);
    pair.from = table.Index("from", true, 0, kMaxDevices).value_or(0);
    pair.to = table.Index("to", true, 0, kMaxDevices).value_or(0);
    table.SetName(TableName(pair));
    table.Read(FieldsOf(pair));
    table.Sources(out_.sources);
    table.Finish();
    override_lines_.push_back({pair, node.line});
  }

  // Which device is of which type.
  void Lay() {
    num_devices_ = 1;
    for (const Level& level : out_.levels) {
      num_devices_ *= level.size;
      if (num_devices_ > kMaxDevices) {
        faults_.Add(1, fmt::format("the levels make more than {} devices; make them smaller", kMaxDevices));
        faults_.Throw();
      }
    }
    if (layout_ != nullptr)
      LayPattern();
    else
      LayCounts();
  }

  void LayCounts() {
    int64_t declared = 0;
    for (const DeviceType& type : types_) {
      if (types_.size() == 1 && !type.count) return;  // all of them
      if (!type.count)
        faults_.Add(type.line,
                    fmt::format("device.{}: 'count' is missing: with several device types each says how many "
                                "there are (or cluster.layout lists them)",
                                type.device.name));
      declared += type.count.value_or(0);
    }
    faults_.Throw();
    if (declared != num_devices_) {
      std::vector<std::string> sizes;
      for (const Level& level : out_.levels) sizes.push_back(fmt::format("{} {}", level.name, level.size));
      faults_.Add(types_[0].line, fmt::format("{} devices declared but levels make {} ({}); change a count or a size",
                                              declared, num_devices_, fmt::join(sizes, " x ")));
      return;
    }
    if (types_.size() == 1) return;
    out_.device_of.reserve(static_cast<size_t>(declared));
    for (size_t t = 0; t < types_.size(); ++t)
      out_.device_of.insert(out_.device_of.end(), static_cast<size_t>(*types_[t].count), static_cast<int32_t>(t));
  }

  void LayPattern() {
    const auto fault = [&](const Node& node, std::string_view reason) {
      faults_.Add(node.line, fmt::format("cluster.layout: {}", reason));
    };
    if (layout_->kind != Kind::kArray || layout_->items.empty())
      return fault(*layout_, "must be a list of device names, repeated over the cluster");
    std::vector<std::string> names;
    for (const DeviceType& type : types_) {
      names.push_back(type.device.name);
      if (type.count)
        faults_.Add(type.line, fmt::format("device.{}.count and cluster.layout both say where devices are; remove one",
                                           type.device.name));
    }
    std::vector<int32_t> pattern;
    for (const Node& item : layout_->items) {
      const auto found = std::find(names.begin(), names.end(), item.text);
      if (item.kind != Kind::kString || found == names.end())
        fault(item,
              fmt::format("unknown device type {}{}", config::Shown(item), DidYouMean(item.text.substr(0, 64), names)));
      else
        pattern.push_back(static_cast<int32_t>(found - names.begin()));
    }
    faults_.Throw();
    for (size_t t = 0; t < names.size(); ++t)
      if (std::find(pattern.begin(), pattern.end(), static_cast<int32_t>(t)) == pattern.end())
        faults_.Add(types_[t].line, fmt::format("device.{} is not in cluster.layout; remove it or add it", names[t]));
    const auto period = static_cast<int64_t>(pattern.size());
    if (num_devices_ % period != 0)
      return fault(*layout_, fmt::format("{} names do not repeat to the {} devices that levels make; give a divisor",
                                         period, num_devices_));
    if (types_.size() == 1) return;
    out_.device_of.resize(static_cast<size_t>(num_devices_));
    for (size_t i = 0; i < out_.device_of.size(); ++i) out_.device_of[i] = pattern[i % pattern.size()];
  }

  void Overrides() {
    std::stable_sort(override_lines_.begin(), override_lines_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.from, a.first.to) < std::pair(b.first.from, b.first.to);
    });
    const PairLink* before = nullptr;
    for (const auto& [pair, line] : override_lines_) {
      for (const int64_t end : {pair.from, pair.to})
        if (end >= num_devices_)
          faults_.Add(line, fmt::format("{}: there is no device {}; there are {}, numbered from 0", TableName(pair),
                                        end, num_devices_));
      if (pair.from == pair.to)
        faults_.Add(line, fmt::format("{}: 'from' and 'to' must be two devices", TableName(pair)));
      if (before != nullptr && before->from == pair.from && before->to == pair.to)
        faults_.Add(line, fmt::format("{} is given twice; keep one", TableName(pair)));
      before = &pair;
      out_.overrides.push_back(pair);
    }
  }

  Faults faults_;
  Table root_;
  Cluster out_;
  std::string currency_;
  const Node* layout_ = nullptr;
  std::vector<DeviceType> types_;
  std::vector<std::pair<PairLink, int64_t>> override_lines_;
  int64_t num_devices_ = 1;
};

}  // namespace

Cluster ParseCluster(std::string_view toml_text, const std::string& source_name) {
  const Node root = config::ParseToml(toml_text, source_name);
  return Parser(root, source_name).Parse();
}

}  // namespace penstock::cluster
