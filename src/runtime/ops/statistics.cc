// Handlers of norm, gather_statistics and finite_clip (docs/numerics.md R9, R10, R12). Every rank decides from the same
// numbers, so all take the same branch before any parameter changes.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "optim/norm.h"
#include "runtime/executor.h"
#include "runtime/gradients.h"
#include "runtime/tags.h"
#include "schedule/buffers.h"
#include "schedule/operators.h"

namespace penstock::runtime {
namespace {

using schedule::Action;

// Records that are gathered, four doubles each.
enum RecordType {
  kNormRecord = 0 /* parameter, norm part, non-finite count */,
  kLossRecord = 1 /* micro-batch, rank, loss sum */,
  kLeafFaultRecord = 2 /* parameter, rank, LeafFault::place: the rank's first leaf that is not finite */
};
constexpr int kRecordSize = 4;

optim::NormKind KindOf(const Job& job) { return optim::ParseNormKind(job.optimizer.clip_norm); }

// numbers: one record per parameter of the unit.
void Norm(ExecutionContext& context, const Action& action) {
  const int u = action.key.unit.stage;
  const std::vector<at::Tensor>& gradients = FinalGradients(context, u);
  const optim::NormKind kind = KindOf(context.job);
  Buffer& out = context.buffers.Allocate(schedule::NormBuffer(action.key.unit));
  std::vector<double> blocks;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const at::Tensor& g = gradients[i];
    blocks.resize(optim::NumNormBlocks(g.numel()));
    const int64_t bad = g.scalar_type() == at::kDouble
                            ? optim::BlockSums(g.const_data_ptr<double>(), g.numel(), kind, blocks.data())
                            : optim::BlockSums(g.const_data_ptr<float>(), g.numel(), kind, blocks.data());
    out.numbers.insert(out.numbers.end(), {kNormRecord, static_cast<double>(context.job.units[u].parameters[i]),
                                           optim::FinishParameter(blocks, kind), static_cast<double>(bad)});
  }
}

void GatherStatistics(ExecutionContext& context, const Action& action) {
  const schedule::Schedule& s = context.schedule;
  const int rank = context.communicator.rank();
  std::vector<double> own;
  for (const schedule::ParameterUnit& unit : s.holders.units) {
    // Holders have equal gradients: the first one speaks for all.
    if (unit.uses.empty() || s.groups[unit.group].front() != rank) continue;
    const std::vector<double>& numbers = context.buffers.At(schedule::NormBuffer(unit.unit)).numbers;
    own.insert(own.end(), numbers.begin(), numbers.end());
  }
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    if (!s.graph.is_last(stage)) continue;
    for (int m = 0; m < s.num_micro_batches(); ++m) {
      if (s.route.rank_of(stage, m) != rank) continue;
      own.insert(own.end(), {kLossRecord, static_cast<double>(m), static_cast<double>(rank),
                             context.buffers.At(schedule::LossBuffer(stage, m)).numbers[0]});
    }
  }
  if (context.leaf_fault)
    own.insert(own.end(), {kLeafFaultRecord, static_cast<double>(context.leaf_fault->parameter),
                           static_cast<double>(rank), static_cast<double>(context.leaf_fault->place)});
  Buffer& gathered = context.buffers.Allocate(schedule::GatheredBuffer());
  at::Tensor data = at::empty({static_cast<int64_t>(own.size())}, at::kDouble);
  std::copy(own.begin(), own.end(), data.data_ptr<double>());
  gathered.works.push_back(context.communicator.AllGatherV(context.groups[action.peer_or_group],
                                                           TagOf(action.key, context.binding.step), data));
  gathered.on_ready = [](Buffer& b) {
    for (const at::Tensor& part : b.works[0]->TakeTensors()) {
      const double* values = part.const_data_ptr<double>();
      b.numbers.insert(b.numbers.end(), values, values + part.numel());
    }
  };
}

int FirstHolder(const ExecutionContext& context, int parameter) {
  for (size_t u = 0; u < context.job.units.size(); ++u)
    for (const int p : context.job.units[u].parameters)
      if (p == parameter) return context.schedule.groups[context.schedule.holders.units[u].group].front();
  throw InternalError(fmt::format("parameter {} has no holder", parameter));
}

void FiniteClip(ExecutionContext& context, const Action& action) {
  const std::vector<double>& records = context.buffers.At(schedule::GatheredBuffer()).numbers;
  const Job& job = context.job;
  const int micro_batches = context.num_micro_batches();
  std::vector<double> norms(job.spec.parameters.size(), 0.0);
  std::vector<double> losses(micro_batches, 0.0);
  std::vector<bool> seen(micro_batches, false);
  Verdict verdict;
  int first_bad_loss = micro_batches, first_bad_parameter = static_cast<int>(norms.size());
  int loss_rank = 0, leaf_rank = 0;
  std::optional<LeafFault> leaf_fault;
  for (size_t r = 0; r + kRecordSize <= records.size(); r += kRecordSize) {
    const int index = static_cast<int>(records[r + 1]);
    const auto type = static_cast<RecordType>(records[r]);
    if (type == kNormRecord) {
      norms[index] = records[r + 2];
      if (records[r + 3] > 0) first_bad_parameter = std::min(first_bad_parameter, index);
    } else if (type == kLeafFaultRecord) {
      const LeafFault fault{static_cast<int64_t>(records[r + 3]), index};
      if (leaf_fault && *leaf_fault < fault) continue;
      leaf_fault = fault;
      leaf_rank = static_cast<int>(records[r + 2]);
    } else {
      losses[index] += records[r + 3];
      seen[index] = context.binding.micro_batches[index].samples > 0;
      if (std::isfinite(records[r + 3]) || index >= first_bad_loss) continue;
      first_bad_loss = index;
      loss_rank = static_cast<int>(records[r + 2]);
    }
  }
  verdict.norm = optim::FinishNorm(norms, KindOf(job));
  double loss_sum = 0;
  TreeSum(
      losses, 0, micro_batches, [&](int32_t j) { return !seen[j]; }, loss_sum);
  verdict.loss = context.binding.valid_tokens == 0 ? 0.0 : loss_sum / static_cast<double>(context.binding.valid_tokens);
  if (first_bad_loss < micro_batches) {
    verdict.loss_finite = false;
    verdict.first_fault =
        fmt::format("the loss of micro-batch {} on rank {} is {}", first_bad_loss, loss_rank, losses[first_bad_loss]);
  } else if (leaf_fault) {
    const auto layers = static_cast<int64_t>(job.spec.layers.size());
    verdict.first_fault = fmt::format("the gradient of '{}' in layer '{}' from micro-batch {} on rank {} is not finite",
                                      job.spec.parameters[leaf_fault->parameter].name,
                                      job.spec.layers[layers - 1 - leaf_fault->place % layers].path,
                                      leaf_fault->place / layers, leaf_rank);
  } else if (first_bad_parameter < static_cast<int>(norms.size())) {
    verdict.first_fault =
        fmt::format("the gradient of '{}' on rank {} is not finite", job.spec.parameters[first_bad_parameter].name,
                    FirstHolder(context, first_bad_parameter));
  } else if (!std::isfinite(verdict.norm)) {
    verdict.first_fault = fmt::format("the gradient norm is {}", verdict.norm);
  }
  verdict.finite = verdict.first_fault.empty();
  verdict.clip_factor = verdict.finite ? optim::ClipFactor(verdict.norm, job.optimizer.clip) : 0.0f;
  context.buffers.Allocate(schedule::VerdictBuffer());
  const auto predicate = static_cast<size_t>(action.key.part);
  if (context.predicates.size() <= predicate) context.predicates.resize(predicate + 1);
  context.predicates[predicate] = verdict.finite && !context.binding.dry;
  context.result.checked = true;
  context.result.verdict = std::move(verdict);
}

const RegisterHandler kNorm{{std::string(schedule::ops::kNorm), &Norm}};
const RegisterHandler kGather{{std::string(schedule::ops::kGatherStatistics), &GatherStatistics}};
const RegisterHandler kFiniteClip{{std::string(schedule::ops::kFiniteClip), &FiniteClip}};

}  // namespace
}  // namespace penstock::runtime
