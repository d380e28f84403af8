#include "base/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace penstock::config {
namespace {

enum class Policy { kWrap, kDrop };

// One key of every type, and the shapes of real sections.
struct Example {
  int64_t steps = 100;
  int32_t ranks = 2;
  double rate = 3e-4;
  double ceiling = std::numeric_limits<double>::infinity();
  double momentum = 0.9;
  bool tied = true;
  std::string optimizer = "adamw";
  std::string name = "run|1";
  int64_t limit = 1 << 20;
  Policy policy = Policy::kWrap;
  std::vector<int64_t> mesh = {1, 2};
  std::vector<int32_t> devices = {0};
  std::vector<double> costs = {1.0, 0.5};
  std::vector<std::string> include = {"*"};
  double clipping = 1.0;
  int64_t depth = 1;

  void Declare(Config& config) {
    config.Add("train", [this](Section& s) {
      s.Help("The loop.");
      s.Int("steps", &steps, {.min = 1, .help = "updates to make", .unit = "steps"});
      s.Int("ranks", &ranks, {.min = 1, .help = "workers"});
      s.Real("rate", &rate, {.above = 0.0, .max = 1.0, .help = "learning rate"});
      s.Real("ceiling", &ceiling, {.allow_infinite = true, .help = "no more than this"});
      s.String("optimizer", &optimizer, {.choices = {"adamw", "sgd"}, .help = "which optimizer"});
      s.Real("momentum", &momentum,
             {.min = 0.0,
              .below = 1.0,
              .help = "of the velocity",
              .only_if = [this] { return optimizer == "sgd"; },
              .only_if_text = "train.optimizer = 'sgd'"});
      s.Real("gradient_clipping", &clipping, {.min = 0.0, .help = "largest global norm"});
      s.Require({"steps", "ranks"}, [this] { return steps % ranks ? "steps must be a multiple of ranks" : ""; });
    });
    config.Add("model", [this](Section& s) {
      s.Bool("tied", &tied, {.help = "share the embedding"});
      s.String("name", &name, {.help = "a name"});
      s.Bytes("limit", &limit, {.max = int64_t{1} << 40, .help = "memory"});
      s.Enum("policy", &policy, {{"wrap", Policy::kWrap}, {"drop", Policy::kDrop}}, {.help = "at the end"});
      s.IntList("mesh", &mesh, {.min = 1, .help = "sizes"});
      s.IntList("devices", &devices, {.min = 0, .help = "which"});
      s.RealList("costs", &costs, {.min = 0.0, .help = "prices"});
      s.StringList("include", &include, {.help = "globs"});
      Section sub = s.Sub("block");
      sub.Int("depth", &depth, {.help = "of a block"});
    });
  }
};

struct Loaded {
  Example values;
  Config config;
  explicit Loaded(std::string_view toml, const std::vector<std::string>& sets = {}) {
    values.Declare(config);
    config.LoadText(toml, "gpt.toml");
    for (const std::string& set : sets) config.Set(set);
    config.Finish();
  }
  Loaded(const Loaded&) = delete;
};

std::string Fault(std::string_view toml, const std::vector<std::string>& sets = {}) {
  try {
    const Loaded loaded(toml, sets);
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return "no error";
}

TEST(Config, ReadsEveryType) {
  const Loaded l(R"(
[train]
steps = 1_000
rate = 1
ceiling = inf
[model]
tied = false
limit = "1.5 GiB"
policy = "drop"
mesh = [2, 3]
devices = []
costs = [1, 2.5]
include = ["*.py", "a/*"]
block.depth = 7
)");
  EXPECT_EQ(l.values.steps, 1000);
  EXPECT_EQ(l.values.rate, 1.0);
  EXPECT_FALSE(l.values.tied);
  EXPECT_EQ(l.values.limit, 1610612736);
  EXPECT_EQ(l.values.policy, Policy::kDrop);
  EXPECT_EQ(l.values.mesh, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(l.values.devices.empty());
  EXPECT_EQ(l.values.costs, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(l.values.include, (std::vector<std::string>{"*.py", "a/*"}));
  EXPECT_EQ(l.values.depth, 7);
  EXPECT_EQ(l.config.Where("train.steps"), "gpt.toml:3");
  EXPECT_EQ(l.config.Where("train.ranks"), "default");
  EXPECT_TRUE(l.config.IsSet("model.mesh"));
}

TEST(Config, UnknownKeysNameTheNearest) {
  EXPECT_EQ(Fault("[train]\nsteps = 4\ngradient_cliping = 1.0\n"),
            "gpt.toml:3: unknown key 'train.gradient_cliping'; did you mean 'gradient_clipping'?");
  EXPECT_EQ(Fault("[trian]\nsteps = 4\n"), "gpt.toml:1: unknown section 'trian'; did you mean 'train'?");
  EXPECT_EQ(Fault("[model]\nblock.dept = 4\n"), "gpt.toml:2: unknown key 'model.block.dept'; did you mean 'depth'?");
  EXPECT_EQ(Fault("[model]\noptimiser = 'sgd'\n"),
            "gpt.toml:2: unknown key 'model.optimiser'; did you mean 'optimizer' in section [train]?");
  EXPECT_EQ(Fault("[model.block]\nxyzzyxyzzy = 1\n"), "gpt.toml:2: unknown key 'model.block.xyzzyxyzzy'; known: depth");
  EXPECT_EQ(Fault("", {"train.stepz=5"}), "--set train.stepz=5: unknown key 'train.stepz'; did you mean 'steps'?");
}

TEST(Config, MisplacedKeysAreToldWhereTheyBelong) {
  EXPECT_EQ(Fault("steps = 4\n"), "gpt.toml:1: unknown key 'steps'; it belongs in section [train] (train.steps)");
  EXPECT_EQ(Fault("[model]\nsteps = 4\n"),
            "gpt.toml:2: unknown key 'model.steps'; it belongs in section [train] (train.steps)");
  EXPECT_EQ(Fault("[model.train]\nsteps = 4\n"),
            "gpt.toml:1: unknown section 'model.train'; it belongs as section [train]");
  EXPECT_EQ(Fault("train = 4\n"), "gpt.toml:1: 'train' is a section, not a key; write [train] and its keys below it");
}

TEST(Config, DuplicatesAreRefused) {
  const std::string fault = Fault("[train]\nsteps = 4\n\nsteps = 6\n");
  EXPECT_EQ(fault.rfind("gpt.toml:4: a key is given twice", 0), 0u) << fault;
  const std::string section = Fault("[train]\nsteps = 4\n[train]\nranks = 1\n");
  EXPECT_EQ(section.rfind("gpt.toml:3: ", 0), 0u) << section;
}

TEST(Config, WrongTypes) {
  EXPECT_EQ(Fault("[train]\nsteps = '4'\n"),
            "gpt.toml:2: train.steps: must be an integer, not a text ('4'); remove the quotes");
  EXPECT_EQ(Fault("[train]\nsteps = 4.0\n"),
            "gpt.toml:2: train.steps: must be an integer, not a real number (4); write 4");
  EXPECT_EQ(Fault("[train]\nrate = '1e-3'\n"),
            "gpt.toml:2: train.rate: must be a real number, not a text ('1e-3'); remove the quotes");
  EXPECT_EQ(Fault("[model]\ntied = 1\n"), "gpt.toml:2: model.tied: must be true or false, not an integer (1)");
  EXPECT_EQ(Fault("[model]\nmesh = 2\n"),
            "gpt.toml:2: model.mesh: must be list of integers, not an integer (2); write [2]");
  EXPECT_EQ(Fault("[model]\nmesh = [2, 'x']\n"),
            "gpt.toml:2: model.mesh: element 2: must be an integer, not a text ('x')");
  EXPECT_EQ(Fault("[model]\nname = 3\n"),
            "gpt.toml:2: model.name: must be a text, not an integer (3); put it in quotes");
  EXPECT_EQ(Fault("[model]\nname.x = 3\n"),
            "gpt.toml:2: model.name: must be a text, not a section ({...}); put it in quotes");
  EXPECT_NE(Fault("[model]\nlimit = '64 M'\n").find("its unit is not one of"), std::string::npos);
}

TEST(Config, Bounds) {
  EXPECT_EQ(Fault("[train]\nsteps = 0\n"), "gpt.toml:2: train.steps: 0 is out of bounds: it must be at least 1");
  EXPECT_EQ(Fault("[train]\nrate = 0\n"), "gpt.toml:2: train.rate: 0 is out of bounds: it must be more than 0");
  EXPECT_EQ(Fault("[train]\nrate = 1.5\n"), "gpt.toml:2: train.rate: 1.5 is out of bounds: it must be at most 1");
  EXPECT_EQ(Fault("[train]\nrate = nan\n"), "gpt.toml:2: train.rate: must be a number, not nan");
  EXPECT_EQ(Fault("[train]\nrate = inf\n"), "gpt.toml:2: train.rate: must be finite, not inf");
  EXPECT_EQ(Fault("[train]\nranks = 3_000_000_000\n"),
            "gpt.toml:2: train.ranks: 3000000000 is out of bounds: it must be at most 2147483647");
  EXPECT_EQ(Fault("[train]\nsteps = 99999999999999999999\n").rfind("gpt.toml:2: ", 0), 0u);
  EXPECT_EQ(Fault("[train]\noptimizer = 'adamv'\n"),
            "gpt.toml:2: train.optimizer: 'adamv' is not one of the choices; did you mean 'adamw'?; "
            "must be one of 'adamw', 'sgd'");
}

TEST(Config, ASettingWithoutEffectIsAnError) {
  EXPECT_EQ(Fault("[train]\nmomentum = 0.5\n"),
            "gpt.toml:2: train.momentum has no effect here: it is used only if train.optimizer = 'sgd'; remove it");
  EXPECT_EQ(Fault("[train]\nmomentum = 0.5\noptimizer = 'sgd'\n"), "no error");
  EXPECT_EQ(Fault("[train]\nmomentum = 0.5\n", {"train.optimizer=sgd"}), "no error");
}

TEST(Config, RequirementsNameTheirKeys) {
  EXPECT_EQ(Fault("[train]\nsteps = 7\n"),
            "train.steps = 7 (gpt.toml:2), train.ranks = 2 (default): steps must be a multiple of ranks");
}

TEST(Config, RequiredKeys) {
  std::string path;
  Config config;
  config.Add("data", [&](Section& s) { s.String("path", &path, {.help = "the text", .required = true}); });
  EXPECT_THROW(config.Finish(), UserError);
  config.Set("data.path=x.txt");
  config.Finish();
  EXPECT_EQ(path, "x.txt");
}

TEST(Config, AllFaultsOfAFileComeTogetherInOrder) {
  const std::string fault = Fault("[model]\nsteps = 4\ntied = 1\n[train]\nrate = 2\n");
  EXPECT_EQ(std::count(fault.begin(), fault.end(), '\n'), 2) << fault;
  EXPECT_LT(fault.find("gpt.toml:2"), fault.find("gpt.toml:3"));
  EXPECT_LT(fault.find("gpt.toml:3"), fault.find("gpt.toml:5"));
}

TEST(Config, SetTakesTomlAndBareStrings) {
  const Loaded l("[train]\nsteps = 4\n", {"train.steps = 6", "model.name=a b", "model.include=['x', 'y']",
                                          "model.mesh=[4]", "train.rate=1e-5", "model.limit=2 kB"});
  EXPECT_EQ(l.values.steps, 6);
  EXPECT_EQ(l.values.name, "a b");
  EXPECT_EQ(l.values.include, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(l.values.mesh, (std::vector<int64_t>{4}));
  EXPECT_EQ(l.values.rate, 1e-5);
  EXPECT_EQ(l.values.limit, 2000);
  EXPECT_EQ(l.config.Where("train.steps"), "--set train.steps = 6");
  EXPECT_EQ(Loaded("", {"model.name=2024-01-01"}).values.name, "2024-01-01");
  EXPECT_EQ(Loaded("", {"model.name=5"}).values.name, "5");
  EXPECT_EQ(Loaded("", {"model.name='5'"}).values.name, "5");
  EXPECT_NE(Fault("", {"train.steps"}).find("write section.key=value"), std::string::npos);
  EXPECT_NE(Fault("", {"train.steps=five"}).find("must be an integer, not a text ('five')"), std::string::npos);
  EXPECT_NE(Fault("", {"train.steps=5\nmodel.tied=false"}).find("must be an integer"), std::string::npos);
  EXPECT_NE(Fault("", {"model.name=\xff\xfe"}).find("UTF-8"), std::string::npos);
}

TEST(Config, ResolvedTextLoadsToTheSameValues) {
  const Loaded first("[train]\nsteps = 4\nrate = 0.1\n[model]\nname = \"a\\\"b\\\\\\n\\u0001 \u00e9\"\n",
                     {"model.block.depth=9"});
  const std::string resolved = first.config.ResolvedToml();
  const Loaded second(resolved);
  EXPECT_EQ(first.config.Json().dump(), second.config.Json().dump());
  EXPECT_EQ(second.values.name, first.values.name);
  EXPECT_EQ(second.values.rate, 0.1);
  EXPECT_TRUE(std::isinf(second.values.ceiling));
  EXPECT_NE(resolved.find("# updates to make [steps]; set at gpt.toml:2, default 100"), std::string::npos) << resolved;
  EXPECT_NE(resolved.find("ranks = 2                         # workers; default"), std::string::npos) << resolved;
  EXPECT_NE(resolved.find("# momentum = 0.9"), std::string::npos) << resolved;
}

TEST(Config, ResolvedTextIsTomlWhateverTheOrigin) {
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\u00e9";
  Example values;
  Config config;
  values.Declare(config);
  config.LoadText("[train]\nsteps = 4\n", "caf\xe9\n.toml");
  config.Set("model.name=x" + accents);  // is cut in the comment, between two characters
  config.Set("model.block.depth= 3");
  config.Finish();
  EXPECT_EQ(Loaded(config.ResolvedToml()).values.name, "x" + accents);
}

TEST(Config, JsonNestsSections) {
  const Loaded l("[train]\nsteps = 4\n");
  const nlohmann::ordered_json json = l.config.Json();
  EXPECT_EQ(json["train"]["steps"], 4);
  EXPECT_EQ(json["train"]["ceiling"], "inf");
  EXPECT_EQ(json["model"]["block"]["depth"], 1);
  EXPECT_EQ(json["model"]["policy"], "wrap");
  EXPECT_EQ(l.config.DescribeJson()[0]["name"], "train.steps");
}

TEST(Config, DocumentsEveryKey) {
  const Loaded l("");
  const std::string docs = l.config.MarkdownDocs();
  EXPECT_NE(docs.find("| `steps` | integer | `100` | steps | at least 1 |  | updates to make |"), std::string::npos);
  EXPECT_NE(docs.find("## [model.block]"), std::string::npos);
  EXPECT_NE(docs.find("`\"run\\|1\"`"), std::string::npos) << docs;
  for (const auto& key : l.config.DescribeJson())
    EXPECT_NE(docs.find("`" + key["name"].get<std::string>().substr(key["name"].get<std::string>().rfind('.') + 1)),
              std::string::npos);
}

TEST(Config, LaterFaultsNameTheKey) {
  const Loaded l("[train]\nsteps = 4\n");
  try {
    l.config.Fail("train.steps", "too few");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "gpt.toml:2: train.steps = 4: too few");
  }
}

TEST(Config, WrongDeclarationsAreOurFault) {
  int64_t x = 5;
  Config config;
  const auto add = [&](const char* section, const char* key, IntOptions options) {
    config.Add(section, [&](Section& s) { s.Int(key, &x, options); });
  };
  add("a", "x", {.help = "h"});
  EXPECT_THROW(add("a", "x", {.help = "h"}), InternalError);
  EXPECT_THROW(add("a", "Y", {.help = "h"}), InternalError);
  EXPECT_THROW(add("a", "y", {}), InternalError);
  EXPECT_THROW(add("a", "y", {.max = 4, .help = "h"}), InternalError);
  EXPECT_THROW(config.IsSet("a.z"), InternalError);
}

TEST(Config, DeepNestingIsRefusedBeforeTheParser) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  EXPECT_NE(Fault(key + " = 1").find("nested deeper"), std::string::npos);
  EXPECT_NE(Fault("[" + key + "]\nx = 1").find("nested deeper"), std::string::npos);
  EXPECT_NE(Fault("x = " + std::string(100'000, '[')).find("gpt.toml:1:"), std::string::npos);
  EXPECT_NE(Fault("x = '''" + std::string(2 << 20, '.') + "'''").find("too much"), std::string::npos);
  EXPECT_EQ(Fault("[model]\nname = '" + std::string(1000, '.') + "' # " + std::string(1000, '.')), "no error");
}

}  // namespace
}  // namespace penstock::config
