// src/report/tensorboard.h
//
// TensorBoard event files, without TensorFlow. `tensorboard --logdir RUN/tensorboard` shows them.
//
// File:      records. Each is its length (8 bytes, little endian), the masked CRC-32C of these 8 bytes, the data, and
//            the masked CRC-32C of the data (TFRecord). The data is a protocol buffer `Event`, of which this writes
//              1 wall_time (double)   2 step (int64)   3 file_version (string, in the first event: "brain.Event:2")
//              5 summary { 1 value { 1 tag (string)  2 simple_value (float) } ... }
//              7 session_log { 1 status: 1 = START }: whoever has read events of this and later steps forgets them.
// Resuming:  the new file begins with the old one's events of the steps that are kept; the old one is removed. A file
// is
//            named after the second it was begun in, so that a TensorBoard that is looking goes on to it.
// Threads: one per writer; the functions any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "report/metrics.h"

namespace penstock::report {

// CRC-32C (Castagnoli polynomial, reflected), as in RFC 3720, appendix B.4.
uint32_t Crc32c(std::string_view bytes);
// As record files keep it: rotated right by 15 bits, plus a constant.
uint32_t MaskedCrc32c(std::string_view bytes);

std::string EventRecord(std::string_view event);  // with lengths and checksums
using Scalars = std::vector<std::pair<std::string, double>>;
std::string SummaryEvent(double wall_time, int64_t step, const Scalars& scalars);
// What a step gives: train/loss, train/grad_norm, train/learning_rate, train/tokens_per_second, train/seconds,
// train/loss_scale, memory/peak_bytes, eval/loss, eval/perplexity, eval/bits_per_byte, eval/accuracy; what it does not
// have is left out.
Scalars ScalarsOf(const StepMetrics& metrics);

struct EventPart {
  int64_t step = 0;
  bool summary = false;
  std::string record;  // whole
};
// The records of a file up to the first damaged or cut one.
std::vector<EventPart> ReadEvents(std::string_view file);

class TensorBoardWriter {
 public:
  // `folder` is made. Keeps the summaries of steps before `first_step` of the files there that this wrote; where there
  // are none, makes them of `before`, at the time of now.
  TensorBoardWriter(const std::string& folder, int64_t first_step, std::span<const StepMetrics> before,
                    FileSystem& files = FileSystem::Real());
  void Write(const StepMetrics& metrics);

 private:
  std::unique_ptr<WritableFile> file_;
};

}  // namespace penstock::report
