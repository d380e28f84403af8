// src/runtime/checkpoint_saver.h
//
// Saves the state of the ranks while they go on training. Every rank writes one shard: of each tensor that D ranks
// hold, a D-th part (comm/shards.h), so no rank writes or copies what another one writes.
//
//   CheckpointSaver saver(job, schedule, communicator, state, options);   // on every rank
//   after each step, on every rank, in this order:
//     saver.AfterStep(report)          what the step gave; the check of the save before it (checkpoint/next_step.h)
//     saver.Save(state, wait)          when due
//     saver.Poll()                     moves what is under way; never waits
//   saver.Finish()                     waits for what is under way
//
// A save takes a snapshot of the rank's shard, up to options.snapshot_bytes, and returns; a thread writes it. What does
// not fit is written before Save returns. With `wait` nothing is copied. Then the ranks' records are gathered (a
// collective of a group of its own, so it does not stand in the way of the schedule's messages), and a thread of rank 0
// publishes. One save is under way at a time: the next one waits for it.
//
// Memory:  the snapshot, released piece by piece as it is written; nothing else.
// Errors:  WorldError of whatever failed, from Save, Poll or Finish of the rank it happened on: the run ends, the
//          checkpoints that were published stay.
// Threads: a saver belongs to its rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/background_task.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/next_step.h"
#include "comm/communicator.h"
#include "runtime/job.h"
#include "runtime/rank_state.h"
#include "schedule/schedule.h"

namespace penstock::runtime {

// What `rank` writes: for every tensor it holds, its part among the holders.
std::vector<checkpoint::Piece> PiecesOf(const Job& job, const schedule::Schedule& schedule, int rank);

struct SaverOptions {
  std::string directory;           // of checkpoints
  checkpoint::SaveOptions save{};  // what is kept
  int64_t snapshot_bytes = 0;      // of one rank; 0: every save waits
};

class CheckpointSaver {
 public:
  CheckpointSaver(const Job& job, const schedule::Schedule& schedule, comm::Communicator& communicator,
                  RankState& state, SaverOptions options);
  ~CheckpointSaver();  // waits for its threads; what was not published stays until RemoveUnfinished or the next save
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // `train`: read on rank 0 only. Collective.
  void Save(const checkpoint::TrainState& train, bool wait);
  // Loss and norm of `step`, on rank 0; without effect unless a save of the state before it has no check yet.
  void AfterStep(int64_t step, double loss, const std::optional<double>& norm);
  void Poll();
  void Finish();

  // Rank 0: the paths published since the last call.
  std::vector<std::string> TakePublished();
  // Does the save made last still lack its check?
  bool WantsNextStep() const { return next_wanted_; }

 private:
  void WriteShard(bool wait);
  void Report();   // posts this rank's record
  void Publish();  // rank 0, when all records are there
  void WriteCheck();

  const Job& job_;
  const schedule::Schedule& schedule_;
  comm::Communicator& communicator_;
  RankState& state_;
  const SaverOptions options_;
  const comm::Group group_;

  int64_t saves_ = 0;
  bool active_ = false;  // a save is under way
  checkpoint::PendingCheckpoint pending_{};
  checkpoint::TrainState train_{};
  std::unique_ptr<BackgroundTask> writing_;
  std::optional<checkpoint::ShardRecord> record_;  // written by `writing_`
  comm::WorkPtr gathering_;
  std::unique_ptr<BackgroundTask> publishing_;
  std::string path_;  // written by `publishing_`

  // The check of the save made last.
  bool next_wanted_ = false;
  int64_t next_step_ = 0;
  std::optional<checkpoint::NextStep> next_;
  std::string next_path_;  // published, waits for its check
  std::vector<std::string> published_;
};

}  // namespace penstock::runtime
