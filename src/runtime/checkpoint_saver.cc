#include "runtime/checkpoint_saver.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "comm/shards.h"
#include "optim/norm.h"
#include "runtime/train_loop.h"

namespace penstock::runtime {
namespace {

using checkpoint::Piece;
using checkpoint::TensorSpec;

constexpr int64_t kLongestPath = 4096;
constexpr uint64_t kFolder = uint64_t{0xfffe} << 48, kRecord = uint64_t{0xfffd} << 48;  // no operator's ids

std::vector<int> AllRanks(int n) {
  std::vector<int> ranks(n);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

at::Tensor ToTensor(std::string_view text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

std::string ToText(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

// A user's folder that went while the run was on is the world's fault.
template <typename F>
auto AsWorldError(const F& action) {
  try {
    return action();
  } catch (const UserError& error) {
    throw WorldError(error.what());
  }
}

at::Tensor Contents(const Job& job, RankState& state, const std::vector<TensorSpec>& optimizer, const Piece& piece) {
  at::Tensor whole;
  if (piece.of == Piece::Of::model) {
    whole = state.parameter(job.spec.parameter_index(piece.tensor.name));
  } else {
    const int per = optim::StatesPerParameter(job.optimizer);
    const auto at = std::find_if(optimizer.begin(), optimizer.end(),
                                 [&](const TensorSpec& spec) { return spec.name == piece.tensor.name; });
    const int index = static_cast<int>(at - optimizer.begin());
    whole = state.optimizer_state(index / per).tensor(index % per);
  }
  return whole.view({-1}).narrow(0, piece.begin, piece.end - piece.begin);
}

}  // namespace

std::vector<Piece> PiecesOf(const Job& job, const schedule::Schedule& schedule, int rank) {
  const std::vector<TensorSpec> model = ModelTensors(job), optimizer = OptimizerTensors(job);
  const int per = optim::StatesPerParameter(job.optimizer);
  std::vector<Piece> pieces;
  for (size_t u = 0; u < job.units.size(); ++u) {
    const schedule::ParameterUnit& unit = schedule.holders.units[u];
    if (unit.uses.empty()) continue;
    const auto group = schedule.groups[unit.group];
    const auto at = std::find(group.begin(), group.end(), rank);
    if (at == group.end()) continue;
    for (const int p : job.units[u].parameters) {
      // Another holder begins for each parameter, or the first one would write all that are too small to be cut.
      const size_t part = (static_cast<size_t>(at - group.begin()) + static_cast<size_t>(p)) % group.size();
      const int64_t numel = model[p].numel();
      const std::vector<int64_t> bounds = comm::ShardBounds(numel, static_cast<int>(group.size()), optim::kNormBlock);
      const int64_t begin = bounds[part], end = bounds[part + 1];
      // A tensor without elements has one piece all the same, or it would not be there when the checkpoint is read.
      if (begin == end && !(numel == 0 && part == 0)) continue;
      pieces.push_back({Piece::Of::model, model[p], begin, end});
      for (int i = 0; i < per; ++i) pieces.push_back({Piece::Of::optimizer, optimizer[p * per + i], begin, end});
    }
  }
  return pieces;
}

CheckpointSaver::CheckpointSaver(const Job& job, const schedule::Schedule& schedule, comm::Communicator& communicator,
                                 RankState& state, SaverOptions options)
    : job_(job),
      schedule_(schedule),
      communicator_(communicator),
      state_(state),
      options_(std::move(options)),
      group_(communicator.CreateGroup(AllRanks(communicator.size()), "checkpoint")) {}

CheckpointSaver::~CheckpointSaver() {
  writing_.reset();
  publishing_.reset();
}

void CheckpointSaver::Save(const checkpoint::TrainState& train, bool wait) {
  Finish();
  communicator_.SetCurrent("saving a checkpoint");
  at::Tensor folder = at::zeros({kLongestPath}, at::kByte);
  if (communicator_.rank() == 0) {
    const comm::HostWork work(communicator_);
    pending_ =
        AsWorldError([&] { return checkpoint::BeginCheckpoint(options_.directory, train.step, options_.save.files); });
    if (static_cast<int64_t>(pending_.folder.size()) >= kLongestPath)
      throw WorldError(fmt::format("the path '{}' is too long", pending_.folder));
    std::memcpy(folder.mutable_data_ptr(), pending_.folder.data(), pending_.folder.size());
    train_ = train;
    next_wanted_ = true;
    next_step_ = train.step;
    next_.reset();
    next_path_.clear();
  }
  communicator_.Broadcast(group_, {kFolder, static_cast<uint64_t>(saves_)}, 0, folder)->Wait();
  pending_.folder = std::string(static_cast<const char*>(folder.const_data_ptr()));
  active_ = true;
  WriteShard(wait);
  ++saves_;
  if (wait) Finish();
}

void CheckpointSaver::WriteShard(bool wait) {
  const comm::HostWork work(communicator_);
  // Ranks without parameters write nothing, and are not counted in the names.
  int shards = 0, shard = 0;
  std::vector<Piece> pieces;
  for (int r = 0; r < communicator_.size(); ++r) {
    std::vector<Piece> of_rank = PiecesOf(job_, schedule_, r);
    if (of_rank.empty()) continue;
    if (r < communicator_.rank()) ++shard;
    if (r == communicator_.rank()) pieces = std::move(of_rank);
    ++shards;
  }
  record_.reset();
  if (pieces.empty()) {
    record_.emplace();
    return;
  }
  // What fits in the snapshot is at the end of the file, so that the rest is written first, without a copy.
  size_t head = pieces.size();
  for (int64_t left = wait ? 0 : options_.snapshot_bytes; head > 0 && pieces[head - 1].bytes() <= left; --head)
    left -= pieces[head - 1].bytes();
  const std::vector<TensorSpec> optimizer = OptimizerTensors(job_);
  AsWorldError([&] {
    auto writer =
        std::make_shared<checkpoint::ShardWriter>(options_.save.files, pending_.folder, shard, shards, pieces);
    for (size_t i = 0; i < head; ++i) writer->Append(Contents(job_, state_, optimizer, pieces[i]));
    auto snapshot = std::make_shared<std::vector<at::Tensor>>();
    for (size_t i = head; i < pieces.size(); ++i)
      snapshot->push_back(Contents(job_, state_, optimizer, pieces[i]).clone());
    const auto finish = [this, writer, snapshot] {
      AsWorldError([&] {
        for (at::Tensor& tensor : *snapshot) {
          writer->Append(tensor);
          tensor = at::Tensor();
        }
        record_ = writer->Finish();
      });
    };
    if (wait)
      finish();
    else
      writing_ = std::make_unique<BackgroundTask>(finish);
  });
}

void CheckpointSaver::Report() {
  if (writing_) {
    const comm::HostWork work(communicator_);
    writing_->Wait();
    writing_.reset();
  }
  const std::string text = checkpoint::FormatShardRecord(*record_);
  gathering_ = communicator_.AllGatherV(group_, {kRecord, static_cast<uint64_t>(saves_)}, ToTensor(text));
}

void CheckpointSaver::Publish() {
  std::vector<checkpoint::ShardRecord> records;
  for (const at::Tensor& text : gathering_->TakeTensors()) {
    checkpoint::ShardRecord record = checkpoint::ParseShardRecord(ToText(text));
    if (!record.pieces.empty()) records.push_back(std::move(record));
  }
  publishing_ = std::make_unique<BackgroundTask>([this, records = std::move(records)] {
    AsWorldError([&] { path_ = checkpoint::PublishCheckpoint(pending_, train_, records, options_.save); });
  });
}

void CheckpointSaver::Poll() {
  if (!active_) return;
  if (!gathering_) {
    if (writing_ && !writing_->Done()) return;
    Report();
  }
  communicator_.Poll();
  if (!gathering_->Done()) return;
  if (communicator_.rank() == 0) {
    if (!publishing_) Publish();
    if (!publishing_->Done()) return;
  }
  Finish();  // nothing is left to wait for
}

void CheckpointSaver::Finish() {
  if (!active_) return;
  communicator_.SetCurrent("writing a checkpoint");
  if (!gathering_) Report();
  gathering_->Wait();
  if (communicator_.rank() == 0) {
    const comm::HostWork work(communicator_);
    if (!publishing_) Publish();
    publishing_->Wait();
    publishing_.reset();
    published_.push_back(path_);
    next_path_ = path_;
    WriteCheck();
  }
  gathering_.reset();
  active_ = false;
}

void CheckpointSaver::AfterStep(int64_t step, double loss, const std::optional<double>& norm) {
  if (communicator_.rank() != 0 || !next_wanted_ || step != next_step_) return;
  next_wanted_ = false;
  next_ = checkpoint::NextStep{step, loss, norm, train_.environment};
  WriteCheck();
}

void CheckpointSaver::WriteCheck() {
  if (!next_ || next_path_.empty()) return;
  const comm::HostWork work(communicator_);
  AsWorldError([&] { checkpoint::WriteNextStep(next_path_, *next_, options_.save.files); });
  next_path_.clear();
  next_.reset();
}

std::vector<std::string> CheckpointSaver::TakePublished() { return std::exchange(published_, {}); }

}  // namespace penstock::runtime
