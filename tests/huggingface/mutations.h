// tests/huggingface/mutations.h
//
// A model folder in memory, and random damage to it. Everything follows from the generator alone.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace penstock::huggingface {

using Random = std::mt19937_64;

// Something that stands in the place of a file.
enum class Kind : uint8_t { file, folder, link_to_folder, link_to_nothing, link_to_itself, pipe };
struct Node {
  Kind kind = Kind::file;
  std::string bytes{};
  friend bool operator==(const Node&, const Node&) = default;
};
using Folder = std::map<std::string, Node>;  // by file name

// Damages `folder` in one to three places; `others` are folders to take files from. Returns what was done, for people.
std::string Damage(Folder& folder, const std::vector<Folder>& others, Random& random);

}  // namespace penstock::huggingface
