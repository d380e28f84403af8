// The order of every registered builder on 4 ranks with 8 micro-batches, and one whole lowered schedule, as files in
// tests/goldens/schedules. A builder without a golden fails. PENSTOCK_UPDATE_GOLDENS=1 writes them; look at the diff.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/registry.h"
#include "paths.h"
#include "schedule/builder.h"
#include "schedule/lower.h"
#include "schedule/text.h"

namespace penstock::schedule {
namespace {

void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = SourceFolder() + "/tests/goldens/schedules/" + name + ".txt";
  if (std::getenv("PENSTOCK_UPDATE_GOLDENS") != nullptr) {
    WriteFileAtomically(path, text, /*overwrite=*/true);
    return;
  }
  ASSERT_TRUE(FileSystem::Real().Exists(path)) << "no golden " << path << "; PENSTOCK_UPDATE_GOLDENS=1 writes it";
  EXPECT_EQ(ReadFile(path), text) << path << " differs; PENSTOCK_UPDATE_GOLDENS=1 writes it anew, if that is right";
}

LowerSpec Spec(int data, int pipeline, int chunks, int micro_batches) {
  LowerSpec spec;
  spec.data = data;
  spec.pipeline = pipeline;
  spec.chunks = chunks;
  spec.micro_batches = micro_batches;
  return spec;
}

TEST(Goldens, OrderOfEveryBuilder) {
  ASSERT_FALSE(Registry<Builder>::All().empty());
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    const Schedule s = AssembleCompute(builder, Spec(1, 4, builder.default_chunks, 8));
    const std::string text = PrintComputeCompact(s);
    ExpectGolden(name + "-p4-m8", text);
    // The short form is a file: it reads back to the same order.
    const Schedule back = ParseSchedule(text);
    EXPECT_EQ(back.ranks, s.ranks) << name;
    EXPECT_EQ(back.route, s.route) << name;
  }
}

TEST(Goldens, AWholeSchedule) {
  LowerSpec spec = Spec(2, 2, 1, 5);
  spec.shared_parameters = {{0, 1}};
  spec.boundary_bytes = {4096};
  spec.recompute = {true, false};
  const Schedule s = Lower(Registry<Builder>::Find("1f1b"), spec);
  ExpectGolden("1f1b-d2-p2-m5-lowered", PrintSchedule(s));
}

TEST(Goldens, EveryBuilderLoweredReadsBackExactly) {
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    for (const int data : {1, 2}) {
      LowerSpec spec = Spec(data, 4, builder.default_chunks, 8 * data);
      spec.shared_parameters = {{0, static_cast<uint16_t>(4 * builder.default_chunks - 1)}};
      const Schedule s = Lower(builder, spec);
      const std::string text = PrintSchedule(s);
      EXPECT_TRUE(ParseSchedule(text) == s) << name << "\n" << text;
    }
  }
}

}  // namespace
}  // namespace penstock::schedule
