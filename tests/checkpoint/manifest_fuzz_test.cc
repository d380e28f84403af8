// Damaged manifests: read back as they were, or refused with a UserError. Nothing else, under the sanitizers too.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "checkpoint/manifest.h"

namespace penstock::checkpoint {
namespace {

Manifest Valid() {
  Manifest m;
  m.state.step = 12;
  m.state.applied_updates = 11;
  m.state.model_fingerprint = "0123";
  m.state.config = "[train]\nsteps = 3\n";
  m.state.extra = {{"session.steps", "3"}};
  m.sequence = 4;
  m.files = {{"shard-00001-of-00002.safetensors", 100, "aa"}, {"shard-00002-of-00002.safetensors", 200, "bb"}};
  m.model["a"] = {{"a", at::kFloat, {2, 3}}, {{0, 0, 4, "00ff"}, {1, 4, 6, "ff00"}}};
  m.model["b"] = {{"b", at::kDouble, {0}}, {{0, 0, 0, "11ee"}}};
  m.optimizer["adamw.m/a"] = {{"adamw.m/a", at::kFloat, {2, 3}}, {{1, 0, 6, "22dd"}}};
  return m;
}

// 1: read, 0: refused.
int Read(const std::string& text, Manifest& manifest) {
  try {
    manifest = ParseManifest(text, "state.json");
    return 1;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("state.json"), std::string::npos);
    return 0;
  }
}

void Fuzz(uint64_t seed, int inputs) {
  std::mt19937_64 rng(seed);
  const std::string text = FormatManifest(Valid());
  int read = 0;
  for (int i = 0; i < inputs; ++i) {
    std::string damaged = text;
    for (int edits = 1 + static_cast<int>(rng() % 3); edits > 0; --edits) {
      const size_t at = rng() % damaged.size();
      switch (rng() % 4) {
        case 0:
          damaged[at] = static_cast<char>(rng());
          break;
        case 1:
          damaged.erase(at, 1 + rng() % 40);
          break;
        case 2:
          damaged.insert(at, std::string(1 + rng() % 3, "[{\",:}]"[rng() % 7]));
          break;
        default:
          damaged.resize(at);
      }
      if (damaged.empty()) damaged = " ";
    }
    Manifest manifest;
    if (Read(damaged, manifest) == 1) {
      EXPECT_EQ(damaged, text);  // edits that undo each other; even another white space is refused
      ++read;
    }
  }
  EXPECT_LT(read, inputs);
}

TEST(ManifestFuzz, Few) { Fuzz(1, 5000); }
TEST(LongManifestFuzz, Many) { Fuzz(2, 400000); }

// A value of another type under a hash that is right: every key in turn.
TEST(ManifestFuzz, TypesAreChecked) {
  const auto whole = nlohmann::ordered_json::parse(FormatManifest(Valid()));
  int refused = 0;
  for (const auto& [key, value] : whole.at("state").items()) {
    for (const nlohmann::ordered_json& other : {nlohmann::ordered_json(nullptr), nlohmann::ordered_json::array(),
                                                nlohmann::ordered_json("x"), nlohmann::ordered_json(-1.5)}) {
      if (other.type() == value.type()) continue;
      nlohmann::ordered_json changed = whole;
      changed["state"][key] = other;
      changed["hash"] = Hash(changed["state"].dump()).Hex();
      Manifest manifest;
      refused += 1 - Read(changed.dump(1) + "\n", manifest);
    }
  }
  EXPECT_GT(refused, 20);
}

// Pieces that a wrong program might write, under a hash that is right.
TEST(ManifestFuzz, PiecesMustTileTheTensor) {
  const auto refused = [](const std::vector<StoredPiece>& pieces, const char* word) {
    Manifest m = Valid();
    m.model["a"].pieces = pieces;
    try {
      ParseManifest(FormatManifest(m), "state.json");
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("'a'"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused({}, "0 of its 6"));
  EXPECT_TRUE(refused({{0, 0, 5, "x"}}, "5 of its 6"));
  EXPECT_TRUE(refused({{0, 0, 7, "x"}}, "7 of its 6"));
  EXPECT_TRUE(refused({{0, 0, 3, "x"}, {1, 2, 6, "x"}}, "follow"));  // overlap
  EXPECT_TRUE(refused({{0, 0, 3, "x"}, {1, 4, 6, "x"}}, "follow"));  // hole
  EXPECT_TRUE(refused({{0, 0, 3, "x"}, {2, 3, 6, "x"}}, "follow"));  // no such file
  EXPECT_TRUE(refused({{0, 3, 6, "x"}, {0, 0, 3, "x"}}, "follow"));  // order
  EXPECT_FALSE(refused({{0, 0, 3, "x"}, {1, 3, 3, "x"}, {1, 3, 6, "x"}}, ""));
}

TEST(ManifestFuzz, DeepNestingIsRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep = R"({"format":"penstock checkpoint","version":1,"hash":"00","state":)";
    for (int i = 0; i < 300000; ++i) deep += open;
    Manifest manifest;
    EXPECT_EQ(Read(deep, manifest), 0);
  }
}

}  // namespace
}  // namespace penstock::checkpoint
