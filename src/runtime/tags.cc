#include "runtime/tags.h"

#include <fmt/format.h>

#include "schedule/operators.h"

namespace penstock::runtime {

// what:  op 16 | stage 16 | part 16 | item 16      which: micro-batch 32 | step 32
comm::Tag TagOf(const schedule::Key& key, int64_t step, int item) {
  comm::Tag tag;
  tag.what = (uint64_t{key.op} << 48) | (uint64_t{key.unit.stage} << 32) |
             (uint64_t{static_cast<uint16_t>(key.part)} << 16) | static_cast<uint16_t>(item);
  tag.which = (uint64_t{static_cast<uint32_t>(key.micro_batch)} << 32) | static_cast<uint32_t>(step + key.step);
  return tag;
}

std::string NameOfTag(const comm::Tag& tag) {
  const auto op = static_cast<schedule::OpId>(tag.what >> 48);
  const auto stage = static_cast<unsigned>((tag.what >> 32) & 0xffff);
  const auto part = static_cast<int16_t>((tag.what >> 16) & 0xffff);
  const auto item = static_cast<unsigned>(tag.what & 0xffff);
  const auto micro_batch = static_cast<int32_t>(tag.which >> 32);
  std::string name = fmt::format("{} {}", op == schedule::kNoOp ? "signal" : schedule::OpName(op), stage);
  if (micro_batch >= 0) name += fmt::format(".{}", micro_batch);
  if (part != 0) name += fmt::format(" part {}", part);
  if (item != 0) name += fmt::format(" item {}", item);
  return name + fmt::format(" (step {})", static_cast<uint32_t>(tag.which));
}

}  // namespace penstock::runtime
