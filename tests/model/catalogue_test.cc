// The catalogue against published parameter counts and against totals worked out from the shapes, to the unit.
#include "model/catalogue.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/registry.h"
#include "model/partition.h"

namespace penstock::model {
namespace {

const CatalogueEntry& Entry(const std::string& name) { return Registry<CatalogueEntry>::Find(name); }

int64_t Parameters(const ModelSpec& spec, const LayerSpec& layer) {
  int64_t n = 0;
  for (const int p : layer.parameters) n += spec.parameters[p].numel();
  return n;
}

TEST(Catalogue, EveryEntryIsWhole) {
  for (const auto& [name, entry] : Registry<CatalogueEntry>::All()) {
    const ModelSpec spec = entry.build();
    EXPECT_NO_THROW(CheckSpec(spec)) << name;
    EXPECT_FALSE(entry.summary.empty()) << name;
    EXPECT_FALSE(entry.source.empty()) << name;
    EXPECT_FALSE(entry.sample.empty()) << name;
    EXPECT_GE(entry.length, 1) << name;
    EXPECT_LE(entry.length, spec.context) << name;
    // Layers in order cover the model: shared parameters are used twice and counted once.
    std::vector<int> uses(spec.parameters.size(), 0);
    int64_t flops = 0, parameters = 0;
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      const LayerSpec& layer = spec.layers[i];
      for (const int p : layer.parameters)
        if (uses[p]++ == 0) parameters += spec.parameters[p].numel();
      flops += layer.forward_flops(1, entry.length);
      EXPECT_FALSE(layer.kind.empty()) << name;
      // The first layer needs no gradient of what the model is given. DiT's first makes c out of the time step.
      const int64_t input = layer.input_flops(1, entry.length), forward = layer.forward_flops(1, entry.length);
      if (i == 0) {
        EXPECT_LT(input, std::max<int64_t>(forward, 1)) << name;
      } else {
        EXPECT_GE(input, forward) << name << " " << layer.path;
      }
      for (const BoundaryTensor& tensor : layer.boundary) {
        EXPECT_GT(tensor.numel(2, entry.length), 0) << name;
        EXPECT_EQ(tensor.shape.front(), kBatch) << name;
      }
    }
    EXPECT_EQ(flops, spec.forward_flops(1, entry.length)) << name;
    EXPECT_EQ(parameters, spec.parameter_count()) << name;
    EXPECT_GT(spec.hidden, 0) << name;
  }
}

TEST(Catalogue, EveryEntryCanBeCut) {
  for (const auto& [name, entry] : Registry<CatalogueEntry>::All()) {
    const ModelSpec spec = entry.build();
    for (const int stages : {1, 2, 4}) {
      if (stages > static_cast<int>(spec.layers.size())) continue;
      for (const char* how : {"even", "balanced"}) {
        const Partition partition = MakePartition(spec, how, stages);
        int64_t flops = 0;
        for (int s = 0; s < stages; ++s)
          for (int l = partition.first[s]; l < partition.first[s + 1]; ++l)
            flops += spec.layers[l].forward_flops(1, entry.length);
        EXPECT_EQ(flops, spec.forward_flops(1, entry.length)) << name << " " << how;
      }
    }
  }
}

TEST(Catalogue, PublishedCounts) {
  int published = 0;
  for (const auto& [name, entry] : Registry<CatalogueEntry>::All()) {
    if (entry.published_parameters == 0) continue;
    ++published;
    const double count = static_cast<double>(entry.build().parameter_count());
    EXPECT_GT(entry.published_tolerance, 0) << name;
    EXPECT_LE(entry.published_tolerance, 0.04) << name;
    EXPECT_LE(std::abs(count / entry.published_parameters - 1), entry.published_tolerance) << name << " " << count;
  }
  EXPECT_EQ(published, 22);
}

TEST(Catalogue, ThousandsOfMillionsAsThePaperCountsThem) {
  // Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h)), which leaves the final norm
  // out.
  for (const auto& [name, entry] : Registry<CatalogueEntry>::All()) {
    if (!entry.source.starts_with("Narayanan")) continue;
    const ModelSpec spec = entry.build();
    const int64_t l = static_cast<int64_t>(spec.layers.size()) - 2, h = spec.hidden;
    EXPECT_EQ(spec.parameter_count(), 12 * l * h * h + 13 * l * h + (51200 + 2048) * h + 2 * h) << name;
  }
}

struct Total {
  const char* name;
  int64_t parameters;
  int64_t flops;  // forward, one sample of the entry's length; 0: not tabled
};

TEST(Catalogue, TotalsToTheUnit) {
  const Total totals[] = {
      {"gpt2-small", 124'439'808, 291'648'307'200},
      {"gpt2-medium", 354'823'168, 826'951'073'792},
      {"llama-2-7b", 6'738'415'616, 62'921'270'886'400},
      {"llama-2-13b", 13'015'864'320, 0},
      {"llama-2-70b", 68'976'648'192, 0},
      {"bert-base", 109'482'240, 12 * 8'053'063'680 + 2 * 768 * 768},
      {"bert-large", 335'141'888, 24 * 13'958'643'712 + 2 * 1024 * 1024},
      {"bert-base-pretraining", 110'106'428, 0},
      {"bert-large-pretraining", 336'226'108, 0},
      {"bert-tiny", 4'385'920, 117'440'512 + 2 * 128 * 128},
      {"resnet-18", 11'689'512, 3'628'146'688},
      {"resnet-50", 25'557'032, 8'178'368'512},
      {"resnet-20-cifar", 269'722, 81'102'080},
      {"resnet-110-cifar", 1'727'962, 505'775'360},
      {"resnet-18-cifar", 11'173'962, 1'110'845'440},
      {"dlrm-mlperf", 24'034'227'072 + 2'368'897, 340'992 + 89'856 + 4'389'376},
      {"dlrm-toy", 2'453'489, 117'248 + 2 * 351 * 16},
      {"lstm-wikitext2", 28'949'319, 35 * (3 * 6'760'000 + 37'529'700)},
      {"lstm-ptb-large", 66'034'000, 0},
      {"lstm-toy", 525'288, 0},
      {"dit-s-2", 32'865'056, 12'111'347'712},
      {"dit-s-4", 32'920'448, 2'825'158'656},
      {"dit-s-8", 33'142'016, 715'948'032},
      {"dit-tiny", 1'277'472, 110'788'608},
      {"gpt-tiny", 842'496, 243'269'632},
      {"llama-tiny", 857'216, 244'318'208},
  };
  for (const Total& total : totals) {
    const CatalogueEntry& entry = Entry(total.name);
    const ModelSpec spec = entry.build();
    EXPECT_EQ(spec.parameter_count(), total.parameters) << total.name;
    if (total.flops > 0) {
      EXPECT_EQ(spec.forward_flops(1, entry.length), total.flops) << total.name;
    }
  }
}

TEST(Catalogue, UnknownNamesGetTheNearest) {
  try {
    Entry("resnet-51");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("resnet-50"), std::string::npos) << error.what();
  }
}

TEST(Catalogue, MegatronModelsKeepTheScores) {
  // Published measurements were made without fused attention, and with dropout.
  const ModelSpec spec = Entry("gpt-22b").build();
  EXPECT_EQ(spec.layers[1].saved.per_token_pair, 64);
  EXPECT_EQ(Parameters(spec, spec.layers[1]), 12 * int64_t{6144} * 6144 + 13 * 6144);
}

}  // namespace
}  // namespace penstock::model
