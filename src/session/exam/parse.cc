#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/toml.h"
#include "session/exam.h"
#include "session/exam/shipped.h"

namespace penstock::session {
namespace {

using config::Node;
using Kind = Node::Kind;

constexpr size_t kMaxFaults = 20;

// Keys of a table, asked for one by one; what was not asked for is unknown.
class Keys {
 public:
  Keys(const Node& table, std::string name, std::vector<std::string>& faults, const std::string& file)
      : table_(table), name_(std::move(name)), faults_(faults), file_(file) {}

  void Fault(int64_t line, const std::string& reason) {
    faults_.push_back(fmt::format("{}:{}: {}: {}", file_, line, name_, reason));
  }
  const Node* Find(const std::string& key, Kind kind, bool required = false) {
    known_.push_back(key);
    for (const auto& [name, node] : table_.keys) {
      if (name != key) continue;
      const bool fits = node.kind == kind || (kind == Kind::kReal && node.kind == Kind::kInt);
      if (fits) return &node;
      Fault(node.line, fmt::format("{} must be {}, not {}", key, config::KindName(kind), config::KindName(node.kind)));
      return nullptr;
    }
    if (required) Fault(table_.line, fmt::format("'{}' is missing", key));
    return nullptr;
  }
  std::string Text(const std::string& key, bool required = false) {
    const Node* node = Find(key, Kind::kString, required);
    if (node != nullptr && required && node->text.empty()) Fault(node->line, fmt::format("{} is empty", key));
    return node == nullptr ? std::string() : node->text;
  }
  bool Bool(const std::string& key) {
    const Node* node = Find(key, Kind::kBool);
    return node != nullptr && node->boolean;
  }
  double Real(const std::string& key, bool required, double above, double fallback) {
    const Node* node = Find(key, Kind::kReal, required);
    if (node == nullptr) return fallback;
    const double value = node->kind == Kind::kInt ? static_cast<double>(node->integer) : node->real;
    if (!(value > above && value < 1e9)) {
      Fault(node->line, fmt::format("{} = {} must be above {} and below 1e9", key, config::Shown(*node), above));
      return fallback;
    }
    return value;
  }
  void Finish() {
    for (const auto& [name, node] : table_.keys)
      if (std::find(known_.begin(), known_.end(), name) == known_.end())
        Fault(node.line, fmt::format("unknown key '{}'{}", config::Printable(name), DidYouMean(name, known_)));
  }

 private:
  const Node& table_;
  std::string name_;
  std::vector<std::string>& faults_;
  const std::string& file_;
  std::vector<std::string> known_;
};

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

class Parser {
 public:
  Parser(const Node& root, const std::string& file, const std::string& folder)
      : root_(root), file_(file), folder_(folder) {}

  Exam Parse() {
    Keys top(root_, "the file", faults_, file_);
    for (const Node* node : Tables(top, "group")) Group(*node);
    for (const Node* node : Tables(top, "point")) Point(*node);
    top.Finish();
    if (faults_.empty()) return std::move(exam_);
    std::string text;
    for (size_t i = 0; i < std::min(kMaxFaults, faults_.size()); ++i) text += (i > 0 ? "\n" : "") + faults_[i];
    if (faults_.size() > kMaxFaults) text += fmt::format("\n... and {} more", faults_.size() - kMaxFaults);
    throw UserError("{}", text);
  }

 private:
  std::vector<const Node*> Tables(Keys& top, const std::string& key) {
    std::vector<const Node*> out;
    const Node* list = top.Find(key, Kind::kArray, true);
    if (list == nullptr) return out;
    for (const Node& item : list->items) {
      if (item.kind == Kind::kTable)
        out.push_back(&item);
      else
        top.Fault(item.line, fmt::format("'{0}' must be sections [[{0}]]", key));
    }
    return out;
  }

  std::vector<std::string> Assignments(Keys& keys, const Node& node) {
    std::vector<std::string> words = Words(keys.Text("set"));
    for (const std::string& word : words)
      if (word.find('=') == std::string::npos)
        keys.Fault(node.line, fmt::format("'{}' in set is no KEY=VALUE", config::Printable(word)));
    return words;
  }

  void Group(const Node& node) {
    ExamGroup group;
    Keys keys(node, "group", faults_, file_);
    group.name = keys.Text("name", true);
    group.summary = keys.Text("summary", true);
    const std::string kind = keys.Text("kind");
    if (!kind.empty() && kind != "own" && kind != "published")
      keys.Fault(node.line, fmt::format("kind '{}' is neither 'published' nor 'own'", config::Printable(kind)));
    group.own = kind == "own";
    group.bounded = keys.Bool("bounded");
    sources_.push_back(keys.Text("source"));
    sets_.push_back(Assignments(keys, node));
    keys.Finish();
    for (const ExamGroup& other : exam_.groups)
      if (other.name == group.name) keys.Fault(node.line, fmt::format("there are two groups '{}'", group.name));
    exam_.groups.push_back(std::move(group));
  }

  void Point(const Node& node) {
    ExamPoint point;
    point.line = node.line;
    Keys keys(node, "point", faults_, file_);
    point.id = keys.Text("id", true);
    point.group = keys.Text("group", true);
    if (!point.id.empty() && !ids_.insert(point.id).second)
      keys.Fault(node.line, fmt::format("there are two points '{}'", point.id));
    point.seconds = keys.Real("seconds", true, 0, 1);
    point.rounding = keys.Real("rounding", false, -1e-12, 0);
    point.spread = keys.Real("spread", false, -1e-12, 0);
    const double tier = keys.Real("tier", false, 0, 1);
    point.tier = static_cast<int64_t>(tier);
    if (tier != 1 && tier != 2) keys.Fault(node.line, fmt::format("tier = {} is neither 1 nor 2", tier));
    point.fitted = keys.Bool("fitted");
    point.unsupported = keys.Text("unsupported");
    for (const char* said : {"value", "formula", "inferred", "layout"}) keys.Text(said);
    point.source = keys.Text("source");
    std::vector<std::string> own = Assignments(keys, node);
    const std::string profile = keys.Text("profile"), cluster = keys.Text("cluster");
    if (const Node* peaks = keys.Find("peak_bytes", Kind::kArray))
      for (const Node& item : peaks->items) {
        if (item.kind == Kind::kInt && item.integer > 0)
          point.peak_bytes.push_back(item.integer);
        else
          keys.Fault(item.line, "peak_bytes must be whole numbers above 0, one per rank");
      }
    keys.Finish();

    const auto group = std::find_if(exam_.groups.begin(), exam_.groups.end(),
                                    [&](const ExamGroup& g) { return g.name == point.group; });
    if (group == exam_.groups.end()) {
      std::vector<std::string> names;
      for (const ExamGroup& g : exam_.groups) names.push_back(g.name);
      if (!point.group.empty())
        keys.Fault(node.line, fmt::format("there is no group '{}'{}", config::Printable(point.group),
                                          DidYouMean(point.group, names)));
      return;
    }
    const auto index = static_cast<size_t>(group - exam_.groups.begin());
    if (point.source.empty()) point.source = sources_[index];
    if (point.source.empty())
      keys.Fault(node.line, fmt::format("'{}' has no source, and neither has its group", point.id));
    if (own.empty() == point.unsupported.empty())
      keys.Fault(node.line, fmt::format("'{}' must have either 'set' or 'unsupported'", point.id));
    point.assignments = sets_[index];
    point.assignments.insert(point.assignments.end(), own.begin(), own.end());
    const auto beside = [&](const std::string& file) { return file[0] == '/' ? file : folder_ + file; };
    if (!profile.empty()) point.assignments.push_back("cluster.profile=" + beside(profile));
    if (!cluster.empty()) point.assignments.push_back("cluster.name=" + beside(cluster));
    exam_.points.push_back(std::move(point));
  }

  const Node& root_;
  const std::string& file_;
  const std::string& folder_;
  Exam exam_;
  std::vector<std::string> faults_;
  std::vector<std::string> sources_;            // [group]
  std::vector<std::vector<std::string>> sets_;  // [group]
  std::set<std::string> ids_;
};

}  // namespace

const ExamGroup& Exam::group(const std::string& name) const {
  for (const ExamGroup& g : groups)
    if (g.name == name) return g;
  throw InternalError(fmt::format("no group '{}' in an exam", name));
}

Exam ParseExam(std::string_view text, const std::string& source_name, const std::string& folder) {
  const Node root = config::ParseToml(text, source_name);
  return Parser(root, source_name, folder).Parse();
}

Exam ReadExam(const std::string& path) {
  const size_t slash = path.rfind('/');
  return ParseExam(ReadFile(path), path, slash == std::string::npos ? std::string() : path.substr(0, slash + 1));
}

Exam ShippedExam() {
  Exam all;
  for (const ShippedFile& file : ShippedExams()) {
    Exam exam = ParseExam(file.text, std::string(file.path), "");
    all.groups.insert(all.groups.end(), exam.groups.begin(), exam.groups.end());
    all.points.insert(all.points.end(), exam.points.begin(), exam.points.end());
  }
  return all;
}

}  // namespace penstock::session
