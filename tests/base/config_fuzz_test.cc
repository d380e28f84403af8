// Random mutations of a valid configuration: whatever comes, the answer is values or a UserError.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/config.h"
#include "base/error.h"

namespace penstock::config {
namespace {

constexpr std::string_view kSeed = R"toml(# a comment
name = "top \u00e9 \"quoted\""
[train]
steps = 1_000
rate = 3.0e-4
when = 2024-05-27T07:32:00Z
[train.'inner key']
"x y" = [1, 2.5, "three", { a = 1, b.c = true }, [[]]]
[[list]]
text = """many
lines"""
raw = '''as is'''
[[list]]
hex = 0xdead_beef
)toml";

constexpr std::string_view kPieces[] = {"[",
                                        "]",
                                        "[[",
                                        "]]",
                                        "{",
                                        "}",
                                        "=",
                                        ".",
                                        ",",
                                        "\"",
                                        "\"\"\"",
                                        "'",
                                        "'''",
                                        "#",
                                        "\n",
                                        "\r\n",
                                        "\\u",
                                        "\\UFFFFFFFF",
                                        "\\x",
                                        "0x",
                                        "0b",
                                        "1e999",
                                        "-",
                                        "+",
                                        "_",
                                        "inf",
                                        "nan",
                                        "true",
                                        "9223372036854775808",
                                        "1979-05-27",
                                        "07:32:00",
                                        "\xff",
                                        "\xc3",
                                        "\xed\xa0\x80",
                                        "steps",
                                        "train",
                                        "[train]",
                                        "rate = ",
                                        "a.b.c = 1\n"};

// Loads `text` and, when it is accepted, demands that its resolved form loads to the same values.
bool Accepts(const std::string& text) {
  struct Values {
    int64_t steps = 1;
    double rate = 1;
    std::string name;
    std::vector<double> list;
    Config config;
    Values() {
      config.Add("", [this](Section& s) { s.String("name", &name, {.help = "h"}); });
      config.Add("train", [this](Section& s) {
        s.Int("steps", &steps, {.min = 0, .help = "h"});
        s.Real("rate", &rate, {.help = "h"});
        s.RealList("list", &list, {.help = "h"});
      });
    }
  };
  try {
    Values first;
    first.config.LoadText(text, "fuzz.toml");
    first.config.Finish();
    Values second;
    second.config.LoadText(first.config.ResolvedToml(), "resolved.toml");
    EXPECT_EQ(first.config.Json().dump(), second.config.Json().dump()) << text;
    return true;
  } catch (const UserError& error) {
    EXPECT_NE(std::string_view(error.what()).find("fuzz.toml"), std::string_view::npos) << error.what();
    return false;
  }
}

bool AcceptsSet(const std::string& text) {
  int64_t steps = 1;
  std::string name;
  std::vector<std::string> list;
  Config config;
  config.Add("train", [&](Section& s) {
    s.Int("steps", &steps, {.help = "h"});
    s.String("name", &name, {.help = "h"});
    s.StringList("list", &list, {.help = "h"});
  });
  try {
    config.Set(text);
    config.Finish();
    (void)config.Json().dump();
    return true;
  } catch (const UserError&) {
    return false;
  }
}

std::string Mutate(std::string text, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const size_t changes = 1 + below(6);
  for (size_t i = 0; i < changes; ++i) {
    const size_t at = below(text.size() + 1);
    switch (below(5)) {
      case 0:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 1:
        text.erase(at, below(8));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 3:
        text.insert(at, text.substr(below(text.size() + 1), below(40)));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

void Fuzz(int rounds) {
  std::mt19937_64 random(1);
  int accepted = 0;
  const std::string valid = "name = 'x'\n[train]\nsteps = 4\nrate = 0.5\nlist = [1.0, inf]\n";
  for (int i = 0; i < rounds && !testing::Test::HasFailure(); ++i) {
    accepted += Accepts(Mutate(std::string(kSeed), random));
    accepted += Accepts(Mutate(valid, random));
    accepted += AcceptsSet(Mutate("train.name='a b'", random));
    accepted += AcceptsSet(Mutate("train.list=['a', \"b\"]", random));
  }
  // Both outcomes must occur, else the mutations are pointless.
  EXPECT_GT(accepted, rounds / 50);
  EXPECT_LT(accepted, 4 * rounds);
}

TEST(ConfigFuzz, AFew) { Fuzz(300); }
TEST(LongConfigFuzz, Many) { Fuzz(200'000); }

}  // namespace
}  // namespace penstock::config
