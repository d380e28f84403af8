// Property: whatever is asked for is lowered to a schedule that verifies under the transports its contract promises,
// survives the text form, or is refused with a reason.
#include <iostream>
#include <map>
#include <random>

#include "schedule/lowered.h"
#include "schedule/text.h"

namespace penstock::schedule::testing {
namespace {

class RandomSpec {
 public:
  explicit RandomSpec(uint32_t seed) : random_(seed) {}

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }

  const Builder& PickBuilder() {
    const auto& all = Registry<Builder>::All();
    return std::next(all.begin(), Below(static_cast<int>(all.size())))->second;
  }

  LowerSpec Draw(const Builder& builder) {
    LowerSpec spec = Mesh(1 + Below(4), 1 + Below(5), 1 + Below(OneIn(2) ? 2 : 4), 1 + Below(10));
    const int stages = spec.pipeline * spec.chunks;
    // Mostly one that the builder knows, sometimes any.
    const auto& placements = OneIn(8) ? PlacementNames() : builder.placements;
    if (OneIn(2)) spec.placement = placements[Below(static_cast<int>(placements.size()))];
    if (OneIn(2)) spec.split_backward = OneIn(2) ? LowerSpec::Split::always : LowerSpec::Split::never;
    if (OneIn(2))
      for (int s = 0; s < stages; ++s) spec.recompute.push_back(OneIn(2));
    if (OneIn(4)) {
      for (int s = 0; s < stages; ++s) spec.stage_has_parameters.push_back(!OneIn(3));
    }
    for (int shared = OneIn(2) ? 1 + Below(2) : 0; shared > 0; --shared) {
      std::vector<uint16_t> uses(2 + Below(2));
      for (uint16_t& stage : uses) stage = static_cast<uint16_t>(Below(stages));
      std::sort(uses.begin(), uses.end());
      spec.shared_parameters.push_back(uses);
    }
    if (OneIn(2)) {
      spec.boundary_bytes.assign(stages - 1, 1000);
      spec.unit_bytes.assign(stages + spec.shared_parameters.size(), 500);
    }
    spec.check = !OneIn(4);
    spec.update = !OneIn(4);
    return spec;
  }

 private:
  std::mt19937 random_;
};

std::string Describe(const Builder& builder, const LowerSpec& spec) {
  return fmt::format("{}: data {} x pipeline {}, {} chunks, {} micro-batches, placement '{}', {} shared", builder.name,
                     spec.data, spec.pipeline, spec.chunks, spec.micro_batches, spec.placement,
                     spec.shared_parameters.size());
}

struct Counts {
  int verified = 0, refused = 0;
};

TEST(RandomLowering, VerifiesOrIsRefusedWithAReason) {
  constexpr int kTrials = 10000;
  RandomSpec random(1);
  std::map<std::string, Counts> counts;
  int64_t actions = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Builder& builder = random.PickBuilder();
    const LowerSpec spec = random.Draw(builder);
    Schedule schedule;
    try {
      const bool after_each = trial % 4 == 0;
      schedule = Lower(builder, spec, [&](const Pass& pass, const Schedule& so_far) {
        if (!after_each) return;
        const VerifyReport report = Verify(so_far, VerifyOptionsAfter(pass, spec));
        ASSERT_TRUE(report.ok()) << "after " << pass.name << ", " << Describe(builder, spec) << '\n'
                                 << report.ToString();
      });
    } catch (const UserError& error) {
      ASSERT_FALSE(std::string(error.what()).empty());
      ++counts[builder.name].refused;
      continue;
    }
    VerifyOptions options;
    options.expect_updates = spec.update;
    const VerifyReport report = Verify(schedule, options);
    ASSERT_TRUE(report.ok()) << Describe(builder, spec) << '\n' << report.ToString();
    for (int t = 0; t < kTransportCount; ++t)
      ASSERT_TRUE(report.transports[t].completes || !builder.contract.deadlock_free[t]) << Describe(builder, spec);
    if (trial % 4 == 1) {
      ASSERT_EQ(ParseSchedule(PrintSchedule(schedule)), schedule) << Describe(builder, spec);
    }
    ++counts[builder.name].verified;
    actions += report.actions;
  }
  std::cout << kTrials << " random requests, " << actions << " actions\n";
  for (const auto& [name, builder] : Registry<Builder>::All()) {
    std::cout << fmt::format("  {:20} {:5} verified {:5} refused\n", name, counts[name].verified, counts[name].refused);
    EXPECT_GT(counts[name].verified, 0) << name << " was always refused";
  }
}

}  // namespace
}  // namespace penstock::schedule::testing
