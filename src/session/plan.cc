#include "session/plan.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "data/batches.h"
#include "model/catalogue.h"
#include "schedule/complete.h"
#include "schedule/lower.h"
#include "schedule/text.h"

namespace penstock::session {
namespace {

model::ModelConfig ResolveModel(const LoadedSettings& loaded, bool own_dataset) {
  const Settings& s = loaded.values;
  model::ModelConfig config = s.model;
  const int64_t ids = data::VocabularyOf(s.data);
  if (config.gpt.vocabulary == 0) config.gpt.vocabulary = ids;
  if (!own_dataset && config.gpt.vocabulary < ids)
    loaded.config.Fail(
        "model.vocabulary",
        fmt::format("the tokenizer {} has {} tokens; use 0 or at least that",
                    s.data.source == "tokens" ? "of the token files" : "'" + s.data.tokenizer + "'", ids));
  if (config.gpt.context == 0) config.gpt.context = s.data.sequence;
  if (config.gpt.context < s.data.sequence)
    loaded.config.Fail("model.context",
                       fmt::format("shorter than data.sequence = {}; use 0 or at least that", s.data.sequence));
  return config;
}

// Samples of the largest micro-batch of a step.
int64_t LargestMicroBatch(const Settings& s) { return std::min(s.train.micro_batch, s.train.batch); }

bool IsFile(const std::string& name) { return name.find_first_of("/.") != std::string::npos; }

// [stage]
std::vector<bool> RecomputeOf(const LoadedSettings& loaded, int stages, const PlanTarget& target) {
  const std::string& text = loaded.values.parallel.recompute;
  if (text == "none" || text == "full") return std::vector<bool>(stages, text == "full");
  std::vector<bool> flags(stages, false);
  if (text == "selective") {
    if (target.runs)
      loaded.config.Fail("parallel.recompute",
                         "selective recomputation is only simulated (fused attention keeps no scores to begin with); "
                         "to run, use none, full or stages such as '0,2'");
    return flags;
  }
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    const std::string word = text.substr(begin, end - begin);
    int stage = -1;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), stage);
    if (error != std::errc() || rest != word.data() + word.size() || word.empty())
      loaded.config.Fail("parallel.recompute",
                         fmt::format("'{}' is no stage; use none, full, selective, or stages such "
                                     "as '0,2'",
                                     word));
    if (stage < 0 || stage >= stages)
      loaded.config.Fail("parallel.recompute",
                         fmt::format("there is no stage {}; the plan has stages 0 to {}", stage, stages - 1));
    flags[stage] = true;
  }
  return flags;
}

int64_t BoundaryBytesOf(const LoadedSettings& loaded, const model::LayerSpec& layer, const Plan& plan,
                        const PlanTarget& target) {
  if (!target.arithmetic)
    return model::BoundaryBytes(layer, plan.samples, plan.length,
                                model::ParsePrecision(loaded.values.numerics.precision));
  int64_t elements = 0;
  for (const model::BoundaryTensor& tensor : layer.boundary) elements += tensor.numel(plan.samples, plan.length);
  return elements * target.arithmetic->boundary_bytes;
}

schedule::LowerSpec MakeLowerSpec(const LoadedSettings& loaded, const Plan& plan, const PlanTarget& target) {
  const Settings& s = loaded.values;
  schedule::LowerSpec spec;
  spec.data = static_cast<int>(s.parallel.data);
  spec.pipeline = static_cast<int>(s.parallel.pipeline);
  spec.chunks = static_cast<int>(s.parallel.chunks);
  spec.micro_batches = MicroBatchesOf(s);
  spec.placement = s.parallel.route;
  const int stages = plan.partition.stages();
  const model::Precision precision = model::ParsePrecision(s.numerics.precision);
  const int gradient = target.arithmetic ? target.arithmetic->gradient_bytes : model::WideBytes(precision);
  for (const model::ModelUnit& unit : plan.units) spec.unit_bytes.push_back(unit.numel * gradient / s.parallel.tensor);
  for (int stage = 0; stage < stages; ++stage) {
    spec.stage_has_parameters.push_back(!plan.units[stage].uses.empty());
    if (stage + 1 < stages)
      spec.boundary_bytes.push_back(
          BoundaryBytesOf(loaded, plan.spec.layers[plan.partition.first[stage + 1] - 1], plan, target));
  }
  for (size_t u = stages; u < plan.units.size(); ++u) {
    std::vector<uint16_t> uses;
    for (const model::UnitUse& use : plan.units[u].uses) uses.push_back(static_cast<uint16_t>(use.stage));
    spec.shared_parameters.push_back(std::move(uses));
  }
  spec.recompute = RecomputeOf(loaded, stages, target);
  spec.fold = target.fold;
  spec.split_backward = s.parallel.split_backward == "always"  ? schedule::LowerSpec::Split::always
                        : s.parallel.split_backward == "never" ? schedule::LowerSpec::Split::never
                                                               : schedule::LowerSpec::Split::as_ordered;
  return spec;
}

// What is planned and simulated, and cannot run yet.
void RefuseToRun(const LoadedSettings& loaded) {
  const Settings& s = loaded.values;
  if (!s.model.reference.empty())
    loaded.config.Fail("model.reference", "published models are only simulated; to train, give model.family and sizes");
  if (s.parallel.tensor > 1)
    loaded.config.Fail("parallel.tensor",
                       "tensor parallelism is only simulated; use 1 and more pipeline or data ranks");
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

int64_t LengthOf(const LoadedSettings& loaded) {
  const std::string& reference = loaded.values.model.reference;
  if (reference.empty() || loaded.config.IsSet("data.sequence")) return loaded.values.data.sequence;
  return Registry<model::CatalogueEntry>::Find(reference).length;
}

model::ModelSpec ModelOf(const LoadedSettings& loaded, bool own_dataset) {
  if (!loaded.values.model.reference.empty())
    return Registry<model::CatalogueEntry>::Find(loaded.values.model.reference).build();
  return model::BuildModel(ResolveModel(loaded, own_dataset));
}

Plan MakePlan(const LoadedSettings& loaded, bool own_dataset, const PlanTarget& target) {
  const Settings& s = loaded.values;
  if (target.runs) RefuseToRun(loaded);
  Plan plan;
  plan.spec = ModelOf(loaded, own_dataset);
  plan.samples = LargestMicroBatch(s);
  plan.length = LengthOf(loaded);
  const int64_t ranks = s.parallel.data * s.parallel.pipeline;
  if (ranks > 1024 && target.runs)
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
  const schedule::LowerSpec lower = MakeLowerSpec(loaded, plan, target);
  if (IsFile(s.parallel.schedule)) {
    plan.schedule =
        schedule::CompleteSchedule(schedule::ParseSchedule(ReadFile(s.parallel.schedule), s.parallel.schedule), lower);
  } else {
    plan.schedule = schedule::Lower(Registry<schedule::Builder>::Find(s.parallel.schedule), lower);
  }
  plan.verdict = schedule::Verify(plan.schedule);
  cost::MemoryRequest memory{.spec = plan.spec,
                             .partition = plan.partition,
                             .units = plan.units,
                             .schedule = plan.schedule,
                             .samples = plan.samples,
                             .length = plan.length,
                             .precision = model::ParsePrecision(s.numerics.precision),
                             .optimizer_states = optim::StatesPerParameter(s.optimizer),
                             .reproducible = s.numerics.reproducible,
                             .checkpoints = true,
                             .snapshot = s.checkpoint.every > 0 ? s.checkpoint.snapshot : 0,
                             .final_state = s.train.sample_tokens > 0,
                             .trace = target.trace_memory};
  if (target.arithmetic) {
    memory.stack =
        cost::StackMemory{.arithmetic = *target.arithmetic,
                          .layout = {.tensor = s.parallel.tensor,
                                     .sequence_parallel = s.parallel.sequence_parallel,
                                     .recompute = s.parallel.recompute == "selective" ? model::Recompute::selective
                                                                                      : model::Recompute::none,
                                     .element_bytes = target.arithmetic->activation_bytes}};
    memory.checkpoints = memory.final_state = false;
    memory.snapshot = 0;
  }
  plan.memory = cost::EstimateMemory(memory);
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
