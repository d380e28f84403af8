#include "report/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>

#include "report/appended_file.h"

namespace penstock::report {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.", kSuffix = ".penstock";

double Now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

template <typename T>
std::string LittleEndian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  return bytes;
}

template <typename T>
T FromLittleEndian(std::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

// ---- protocol buffers: fields of wire type 0 (varint), 1 (8 bytes), 2 (length and bytes), 5 (4 bytes) ----

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Key(int field, int wire) { return Varint(static_cast<uint64_t>((field << 3) | wire)); }
std::string IntField(int field, int64_t value) { return Key(field, 0) + Varint(static_cast<uint64_t>(value)); }
std::string DoubleField(int field, double value) {
  return Key(field, 1) + LittleEndian(std::bit_cast<uint64_t>(value));
}
std::string FloatField(int field, float value) { return Key(field, 5) + LittleEndian(std::bit_cast<uint32_t>(value)); }
std::string BytesField(int field, std::string_view bytes) {
  return Key(field, 2) + Varint(bytes.size()) + std::string(bytes);
}

bool TakeVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Step and kind of an event; false when it is none.
bool ReadEvent(std::string_view event, EventPart& part) {
  while (!event.empty()) {
    uint64_t key = 0, value = 0;
    if (!TakeVarint(event, key)) return false;
    switch (key & 7) {
      case 0:
        if (!TakeVarint(event, value)) return false;
        if (key >> 3 == 2) part.step = static_cast<int64_t>(value);
        break;
      case 1:
      case 5: {
        const size_t size = (key & 7) == 1 ? 8 : 4;
        if (event.size() < size) return false;
        event.remove_prefix(size);
        break;
      }
      case 2:
        if (!TakeVarint(event, value) || value > event.size()) return false;
        event.remove_prefix(value);
        if (key >> 3 == 5) part.summary = true;
        break;
      default:
        return false;
    }
  }
  return true;
}

// The second in the name of a file of ours; -1 for others.
int64_t SecondOf(const std::string& name) {
  if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) || !name.ends_with(kSuffix))
    return -1;
  const std::string digits = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
  int64_t second = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), second);
  return error == std::errc() && end == digits.data() + digits.size() && second < int64_t{1} << 40 ? second : -1;
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78u : 0u);
      made[i] = c;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t MaskedCrc32c(std::string_view bytes) { return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u; }

std::string EventRecord(std::string_view event) {
  const std::string length = LittleEndian(uint64_t{event.size()});
  return length + LittleEndian(MaskedCrc32c(length)) + std::string(event) + LittleEndian(MaskedCrc32c(event));
}

std::string SummaryEvent(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars)
    summary += BytesField(1, BytesField(1, tag) + FloatField(2, static_cast<float>(value)));
  return DoubleField(1, wall_time) + IntField(2, step) + BytesField(5, summary);
}

Scalars ScalarsOf(const StepMetrics& m) {
  Scalars scalars = {{"train/loss", m.loss}};
  if (m.grad_norm) scalars.emplace_back("train/grad_norm", *m.grad_norm);
  scalars.emplace_back("train/learning_rate", m.learning_rate);
  scalars.emplace_back("train/tokens_per_second", m.tokens_per_second);
  scalars.emplace_back("train/seconds", m.seconds);
  if (m.loss_scale) scalars.emplace_back("train/loss_scale", *m.loss_scale);
  if (!m.peak_bytes.empty())
    scalars.emplace_back("memory/peak_bytes",
                         static_cast<double>(*std::max_element(m.peak_bytes.begin(), m.peak_bytes.end())));
  if (m.eval) {
    scalars.emplace_back("eval/loss", m.eval->loss);
    scalars.emplace_back("eval/perplexity", std::exp(m.eval->loss));
    if (m.eval->bits_per_byte) scalars.emplace_back("eval/bits_per_byte", *m.eval->bits_per_byte);
    scalars.emplace_back("eval/accuracy", m.eval->accuracy);
  }
  return scalars;
}

std::vector<EventPart> ReadEvents(std::string_view file) {
  std::vector<EventPart> events;
  while (file.size() >= 12) {
    const auto length = FromLittleEndian<uint64_t>(file.substr(0, 8));
    if (FromLittleEndian<uint32_t>(file.substr(8, 4)) != MaskedCrc32c(file.substr(0, 8))) break;
    if (length > file.size() - 12 || file.size() - 12 - length < 4) break;
    const std::string_view event = file.substr(12, length);
    if (FromLittleEndian<uint32_t>(file.substr(12 + length, 4)) != MaskedCrc32c(event)) break;
    EventPart part;
    if (!ReadEvent(event, part)) break;
    part.record = file.substr(0, 16 + length);
    events.push_back(std::move(part));
    file.remove_prefix(16 + length);
  }
  return events;
}

TensorBoardWriter::TensorBoardWriter(const std::string& folder, int64_t first_step, std::span<const StepMetrics> before,
                                     FileSystem& files) {
  files.CreateFolders(folder);
  std::vector<std::string> old;
  std::string summaries;
  int64_t newest = 0;
  for (const std::string& name : files.List(folder)) {
    if (SecondOf(name) < 0) continue;
    old.push_back(name);
    // A crash may have left a file and the one that was to replace it, with the same events: each step once.
    for (const EventPart& event : ReadEvents(ReadFile(folder + "/" + name, files)))
      if (event.summary && event.step < first_step && event.step > newest) {
        summaries += event.record;
        newest = event.step;
      }
  }
  const double now = Now();
  if (summaries.empty())
    for (const StepMetrics& m : before) summaries += EventRecord(SummaryEvent(now, m.step, ScalarsOf(m)));
  std::string kept = EventRecord(DoubleField(1, now) + BytesField(3, "brain.Event:2"));
  // Whoever looks at the old file meanwhile starts over.
  if (!old.empty()) kept += EventRecord(DoubleField(1, now) + IntField(2, 1) + BytesField(7, IntField(1, /*START*/ 1)));
  auto second = static_cast<int64_t>(now);
  for (const std::string& before_it : old) second = std::max(second, SecondOf(before_it) + 1);  // clocks may go back
  const std::string name = fmt::format("{}{:010}{}", kPrefix, second, kSuffix);
  file_ = BeginAnew(folder + "/" + name, kept + summaries, files);
  for (const std::string& replaced : old) files.Remove(folder + "/" + replaced);
}

void TensorBoardWriter::Write(const StepMetrics& metrics) {
  file_->Append(EventRecord(SummaryEvent(Now(), metrics.step, ScalarsOf(metrics))));
}

}  // namespace penstock::report
