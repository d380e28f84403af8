#include "session/plan.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "data/batches.h"
#include "schedule/complete.h"
#include "schedule/lower.h"
#include "schedule/text.h"

namespace penstock::session {
namespace {

model::ModelConfig ResolveModel(const LoadedSettings& loaded, bool own_dataset) {
  const Settings& s = loaded.values;
  model::ModelConfig config = s.model;
  const int64_t tokenizer = data::MakeTokenizer(s.data.tokenizer)->vocabulary();
  if (config.gpt.vocabulary == 0) config.gpt.vocabulary = tokenizer;
  if (!own_dataset && config.gpt.vocabulary < tokenizer)
    loaded.config.Fail("model.vocabulary", fmt::format("the tokenizer '{}' has {} tokens; use 0 or at least that",
                                                       s.data.tokenizer, tokenizer));
  if (config.gpt.context == 0) config.gpt.context = s.data.sequence;
  if (config.gpt.context < s.data.sequence)
    loaded.config.Fail("model.context",
                       fmt::format("shorter than data.sequence = {}; use 0 or at least that", s.data.sequence));
  return config;
}

// Samples of the largest micro-batch of a step.
int64_t LargestMicroBatch(const Settings& s) { return std::min(s.train.micro_batch, s.train.batch); }

bool IsFile(const std::string& name) { return name.find_first_of("/.") != std::string::npos; }

schedule::LowerSpec MakeLowerSpec(const LoadedSettings& loaded, const Plan& plan) {
  const Settings& s = loaded.values;
  schedule::LowerSpec spec;
  spec.data = static_cast<int>(s.parallel.data);
  spec.pipeline = static_cast<int>(s.parallel.pipeline);
  spec.chunks = static_cast<int>(s.parallel.chunks);
  spec.micro_batches = MicroBatchesOf(s);
  spec.placement = s.parallel.route;
  const int stages = plan.partition.stages();
  const model::Precision precision = model::ParsePrecision(s.numerics.precision);
  for (const model::ModelUnit& unit : plan.units) spec.unit_bytes.push_back(unit.numel * model::WideBytes(precision));
  for (int stage = 0; stage < stages; ++stage) {
    spec.stage_has_parameters.push_back(!plan.units[stage].uses.empty());
    if (stage + 1 < stages)
      spec.boundary_bytes.push_back(model::BoundaryBytes(plan.spec.layers[plan.partition.first[stage + 1] - 1],
                                                         LargestMicroBatch(s), s.data.sequence, precision));
  }
  for (size_t u = stages; u < plan.units.size(); ++u) {
    std::vector<uint16_t> uses;
    for (const model::UnitUse& use : plan.units[u].uses) uses.push_back(static_cast<uint16_t>(use.stage));
    spec.shared_parameters.push_back(std::move(uses));
  }
  spec.recompute.assign(stages, s.parallel.recompute == "full");
  spec.split_backward = s.parallel.split_backward == "always"  ? schedule::LowerSpec::Split::always
                        : s.parallel.split_backward == "never" ? schedule::LowerSpec::Split::never
                                                               : schedule::LowerSpec::Split::as_ordered;
  return spec;
}

// What the executor does not do, and what a hand-written schedule could ask for all the same.
void RequireRunnable(const schedule::Schedule& s) {
  if (s.contract.staleness != 0 || s.contract.equivalence != schedule::Equivalence::exact)
    throw UnsoundSchedule(
        "the schedule '{}' declares staleness {} and equivalence '{}'; only synchronous, exact ones are run", s.name,
        s.contract.staleness, schedule::kEquivalenceNames[static_cast<size_t>(s.contract.equivalence)]);
  if (!s.graph.is_chain())
    throw UnsoundSchedule("the stages of the schedule '{}' are no chain; only chains are run", s.name);
  for (int rank = 0; rank < s.num_ranks(); ++rank) {
    bool checked = false;
    for (const schedule::Action& action : s.ranks[rank]) {
      if (action.key.step != 0 || action.key.round != 0)
        throw UnsoundSchedule("'{}' of rank {} in schedule '{}' is of another step or round; only those of one are run",
                              schedule::ToString(action), rank, s.name);
      if (action.key.kind == schedule::Kind::check) checked = true;
      if (action.key.kind == schedule::Kind::update && (!checked || action.guard != 0))
        throw UnsoundSchedule(
            "'{}' of rank {} in schedule '{}' is not guarded by a check before it: clipping and non-finite values "
            "would be ignored; write "
            "'check:finite_clip' first and 'if=0' on every update",
            schedule::ToString(action), rank, s.name);
    }
  }
}

}  // namespace

int MicroBatchesOf(const Settings& s) {
  return data::CountMicroBatches(
      s.data.MakeBatchOptions(s.train.batch, s.train.micro_batch, static_cast<uint64_t>(s.run.seed)));
}

model::ModelSpec ModelOf(const LoadedSettings& loaded, bool own_dataset) {
  return model::BuildModel(ResolveModel(loaded, own_dataset));
}

Plan MakePlan(const LoadedSettings& loaded, bool own_dataset) {
  const Settings& s = loaded.values;
  Plan plan;
  plan.spec = ModelOf(loaded, own_dataset);
  const int64_t ranks = s.parallel.data * s.parallel.pipeline;
  if (ranks > 1024)
    loaded.config.Fail("parallel.data", fmt::format("{} x {} = {} ranks; thread ranks go up to 1024", s.parallel.data,
                                                    s.parallel.pipeline, ranks));
  const int64_t stages = s.parallel.pipeline * s.parallel.chunks;
  const auto layers = static_cast<int64_t>(plan.spec.layers.size());
  if (stages > layers)
    loaded.config.Fail(
        s.parallel.chunks > 1 ? "parallel.chunks" : "parallel.pipeline",
        fmt::format(
            "{} positions x {} chunks = {} stages, but the model has only {} layers (embedding, {} blocks, head); "
            "use at most {} stages or raise model.layers",
            s.parallel.pipeline, s.parallel.chunks, stages, layers, s.model.gpt.layers, layers));
  plan.partition = model::MakePartition(plan.spec, s.parallel.stages, static_cast<int>(stages));
  plan.units = model::MakeUnits(plan.spec, plan.partition);
  const schedule::LowerSpec lower = MakeLowerSpec(loaded, plan);
  if (IsFile(s.parallel.schedule)) {
    plan.schedule =
        schedule::CompleteSchedule(schedule::ParseSchedule(ReadFile(s.parallel.schedule), s.parallel.schedule), lower);
  } else {
    plan.schedule = schedule::Lower(Registry<schedule::Builder>::Find(s.parallel.schedule), lower);
  }
  plan.verdict = schedule::Verify(plan.schedule);
  plan.memory = cost::EstimateMemory({.spec = plan.spec,
                                      .partition = plan.partition,
                                      .units = plan.units,
                                      .schedule = plan.schedule,
                                      .samples = LargestMicroBatch(s),
                                      .length = s.data.sequence,
                                      .precision = model::ParsePrecision(s.numerics.precision),
                                      .optimizer_states = optim::StatesPerParameter(s.optimizer),
                                      .reproducible = s.numerics.reproducible,
                                      .checkpoints = true,
                                      .final_state = s.train.sample_tokens > 0});
  plan.explanation = model::ExplainPartition(plan.spec, plan.partition);
  if (!plan.explanation.empty() && plan.explanation.back() != '\n') plan.explanation += '\n';
  plan.explanation +=
      fmt::format("batch: {} samples = {} micro-batches of up to {}, over {} replica{} ({})\n", s.train.batch,
                  lower.micro_batches, LargestMicroBatch(s), s.parallel.data, s.parallel.data == 1 ? "" : "s",
                  s.parallel.data == 1 ? "all on one"
                                       : fmt::format("{} to {} each", lower.micro_batches / s.parallel.data,
                                                     (lower.micro_batches + s.parallel.data - 1) / s.parallel.data));
  if (const int64_t idle = s.parallel.data - lower.micro_batches; idle > 0)
    plan.explanation += fmt::format(
        "note: {} of {} replicas have no micro-batch and do nothing; use parallel.data = {}, a smaller "
        "train.micro_batch or a larger train.batch\n",
        idle, s.parallel.data, lower.micro_batches);
  plan.explanation +=
      fmt::format("schedule: {} on {} data x {} pipeline ranks, {} stages, {} actions\n", s.parallel.schedule,
                  s.parallel.data, s.parallel.pipeline, stages, plan.schedule.num_actions());
  return plan;
}

void RequireSound(const Plan& plan) {
  // The executor issues a rank's list in program order with buffered sends (eager); messages and collectives then
  // complete on their own channels and queues (channelled).
  const auto completes = [&](schedule::Transport t) {
    return plan.verdict.transports[static_cast<size_t>(t)].completes;
  };
  RequireRunnable(plan.schedule);
  if (plan.verdict.ok() && completes(schedule::Transport::eager) && completes(schedule::Transport::channelled)) return;
  throw UnsoundSchedule("the schedule '{}' is not sound, so it is not run:\n{}", plan.schedule.name,
                        plan.verdict.ToString());
}

}  // namespace penstock::session
