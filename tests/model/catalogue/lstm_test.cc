// LSTM language models layer by layer.
#include <gtest/gtest.h>

#include "base/registry.h"
#include "model/catalogue.h"

namespace penstock::model {
namespace {

ModelSpec Build(const std::string& name) { return Registry<CatalogueEntry>::Find(name).build(); }

int64_t Own(const ModelSpec& spec, size_t layer) {
  int64_t n = 0;
  for (const int p : spec.layers[layer].parameters) n += spec.parameters[p].numel();
  return n;
}

TEST(Lstm, WikiText) {
  const ModelSpec spec = Build("lstm-wikitext2");
  ASSERT_EQ(spec.layers.size(), 5u);
  EXPECT_EQ(Own(spec, 0), 18'764'850);
  for (size_t l = 1; l <= 3; ++l) {
    EXPECT_EQ(Own(spec, l), 3'385'200);
    EXPECT_EQ(spec.layers[l].forward_flops.per_token, 6'760'000);
    EXPECT_EQ(spec.layers[l].input_flops.per_token, 6'760'000);
    EXPECT_EQ(spec.layers[l].weight_flops.per_token, 6'760'000);
    EXPECT_EQ(spec.layers[l].saved.per_token + spec.layers[l].saved_operands.per_token, 650 + 7 * 650);
    ASSERT_EQ(spec.layers[l].boundary.size(), 1u);  // the state stays
  }
  EXPECT_EQ(spec.layers[4].forward_flops.per_token, 37'529'700);
  EXPECT_EQ(Own(spec, 4) - Own(spec, 0), 28'869);  // tied: only the bias is its own
  EXPECT_EQ(spec.parameters[spec.parameter_index("lstm.1.weight_hh")].shape, (std::vector<int64_t>{2600, 650}));
  // Share of the embedding, which makes this a test of compression.
  EXPECT_NEAR(18'764'850.0 / static_cast<double>(spec.parameter_count()), 0.65, 0.005);
}

TEST(Lstm, PtbIsUntied) {
  const ModelSpec spec = Build("lstm-ptb-large");
  EXPECT_EQ(Own(spec, 0), 15'000'000);
  EXPECT_EQ(Own(spec, 1), 18'012'000);
  EXPECT_EQ(Own(spec, 3), 15'010'000);
}

}  // namespace
}  // namespace penstock::model
