// src/model/catalogue.h
//
// Reference models as published, to plan and simulate with, whatever their size: nothing here allocates a parameter.
//   const ModelSpec spec = Registry<CatalogueEntry>::Find("resnet-50").build();
//   spec.forward_flops(1, entry.length)
// docs/models.md lists them. The GPT entries can also be trained (nn has their layers); others are specs only, and
// their ModelSpec::family is no family of a configuration.
//
// What is general about the specs that are not GPTs:
//   length       tokens of a sample. Images and records have length 1 and all their sizes are per sample.
//   saved        the input of a layer is counted by the layer, its output by the next. Statistics that do not grow with
//                the micro-batch (BatchNorm), integer indices and masks are left out.
//   hidden       elements per token of the widest boundary of the model
//   operations   of BERT and DiT are split over tensor-parallel groups like a GPT's; convolutions, recurrent layers and
//                recommendation models are not (replicated)
// Threads: entries are immutable; `build` may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/spec.h"

namespace penstock::model {

struct CatalogueEntry {
  static constexpr const char* kRegistryName = "reference model";
  std::string name{};
  std::string summary{};
  std::string source{};
  std::vector<int64_t> sample{};  // one sample as the model takes it: {tokens}, {channels, height, width}, {features}
  int64_t length = 1;             // of a sample, for SizeFormula
  // The count in the source, where that is rounded, and by what share of it ours may differ (0: none published).
  double published_parameters = 0;
  double published_tolerance = 0;
  std::function<ModelSpec()> build{};
};

}  // namespace penstock::model
