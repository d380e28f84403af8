// src/cluster/file/table.h
//
// Reading one TOML table key by key: what is asked for is known, the rest is a fault. Faults are collected.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/toml.h"
#include "cluster/file/fields.h"

namespace penstock::cluster {

// "FILE:LINE: REASON" of everything wrong in a file.
class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}
  void Add(int64_t line, std::string_view reason);
  bool none() const { return list_.empty(); }
  // UserError with the first 20, by line; nothing when there are none.
  void Throw() const;

 private:
  std::string file_;
  std::vector<std::pair<int64_t, std::string>> list_;
};

class Table {
 public:
  // `name` is its full name in messages ("device.a100"; "" at the top level); it may be set later, when it was read.
  // `node` may be null or no table: then nothing is found (the latter is a fault).
  Table(const config::Node* node, std::string name, int64_t line, Faults& faults);

  void SetName(std::string name) { name_ = std::move(name); }
  int64_t line() const { return line_; }
  // Null when the key is not there. A required one is then a fault.
  const config::Node* Find(std::string_view key, bool required = false);
  // "key: reason" at the line of the node.
  void Fault(const config::Node& node, std::string_view key, std::string_view reason);
  void Fault(std::string_view reason);

  std::string Text(std::string_view key, bool required);
  // A text that names something: letters, digits, '-', '_', '.', at most 64.
  std::string Name(std::string_view key);
  bool Bool(std::string_view key);
  std::optional<int64_t> Index(std::string_view key, bool required, int64_t min, int64_t max);
  // Fills the variables and notes that their numbers need a source.
  void Read(const Fields& fields);
  std::map<std::string, double, std::less<>> Flops();

  // Reads `source` and `sources` for the numbers that were there, into `out` by full name. After all Read.
  void Sources(std::map<std::string, std::string>& out);
  // Unknown keys, with the nearest known one.
  void Finish();

 private:
  void Read(const NumberField& field);
  void Read(const CurveField& field);
  // Finds "efficiency.gemm" in the sub-table efficiency.
  const config::Node* FindDotted(std::string_view key, bool required);
  std::optional<double> Real(const config::Node& node, std::string_view key, double min, double max);

  const config::Node* node_;
  std::string name_;
  int64_t line_;
  Faults& faults_;
  std::vector<std::string> known_;
  std::vector<std::pair<std::string, std::vector<std::string>>> known_below_;  // of sub-tables
  std::vector<std::pair<std::string, int64_t>> numbers_;                       // key, line
};

}  // namespace penstock::cluster
