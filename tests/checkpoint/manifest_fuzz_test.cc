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
  m.model_hashes = {{"a", "00ff"}, {"b", "11ee"}};
  m.optimizer_hashes = {{"adamw.m/a", "22dd"}};
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
      EXPECT_EQ(manifest, Valid());  // white space, or the same again: the hash holds the rest
      ++read;
    }
  }
  EXPECT_LT(read, inputs);
}

TEST(ManifestFuzz, Few) { Fuzz(1, 5000); }
TEST(LongManifestFuzz, Many) { Fuzz(2, 400000); }

// A value of another type under a hash that is right: every key in turn.
TEST(ManifestFuzz, TypesAreChecked) {
  const auto whole = nlohmann::json::parse(FormatManifest(Valid()));
  int refused = 0;
  for (const auto& [key, value] : whole.at("state").items()) {
    for (const nlohmann::json& other :
         {nlohmann::json(nullptr), nlohmann::json::array(), nlohmann::json("x"), nlohmann::json(-1.5)}) {
      if (other.type() == value.type()) continue;
      nlohmann::json changed = whole;
      changed["state"][key] = other;
      changed["hash"] = Hash(changed["state"].dump()).Hex();
      Manifest manifest;
      refused += 1 - Read(changed.dump(), manifest);
    }
  }
  EXPECT_GT(refused, 20);
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
