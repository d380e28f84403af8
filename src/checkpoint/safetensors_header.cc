#include "checkpoint/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"

namespace penstock::checkpoint {
namespace {

constexpr std::pair<const char*, at::ScalarType> kDtypes[] = {
    {"F64", at::kDouble}, {"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf},
    {"I64", at::kLong},   {"I32", at::kInt},   {"U8", at::kByte},
};

// One handler for the whole grammar. It refuses at the first token that does not belong, so that neither depth nor
// size of what follows matters. Callbacks may throw: the library passes exceptions on.
class HeaderSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderSax(const std::string& file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::start:
        state_ = State::top;
        return true;
      case State::entry:
        if (key_ == "__metadata__") {
          state_ = State::metadata;
        } else {
          state_ = State::tensor;
          tensor_ = {.spec = {.name = key_}};
          dtype_.reset();
          fields_.clear();
        }
        return true;
      default:
        Unexpected("an object");
    }
  }

  bool key(string_t& name) override {
    if (state_ == State::top) {
      if (!names_.insert(name).second) Fail("the key '{}' appears twice", name);
      key_ = name;
      state_ = State::entry;
    } else if (state_ == State::metadata) {
      if (header_.metadata.count(name) != 0) Fail("the key '{}' appears twice in __metadata__", name);
      key_ = name;
      state_ = State::metadata_value;
    } else {  // State::tensor
      if (name != "dtype" && name != "shape" && name != "data_offsets")
        FailTensor("unknown field '{}'; known: dtype, shape, data_offsets", name);
      if (!fields_.insert(name).second) FailTensor("the field '{}' appears twice", name);
      field_ = name;
      state_ = State::field;
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::tensor) {
      FinishTensor();
      state_ = State::top;
    } else if (state_ == State::metadata) {
      state_ = State::top;
    } else {
      state_ = State::done;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::field || field_ == "dtype") Unexpected("an array");
    numbers_.clear();
    state_ = State::array;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::array) Unexpected(fmt::format("the number {}", value));
    if (numbers_.size() == kMaxSafetensorsDimensions)
      FailTensor("{} has more than {} entries", field_, kMaxSafetensorsDimensions);
    numbers_.push_back(value);
    return true;
  }

  bool end_array() override {
    if (field_ == "shape") {
      for (const uint64_t d : numbers_) {
        if (d > static_cast<uint64_t>(INT64_MAX)) FailTensor("the dimension {} is not a 63-bit number", d);
        tensor_.spec.shape.push_back(static_cast<int64_t>(d));
      }
    } else {
      if (numbers_.size() != 2) FailTensor("data_offsets has {} entries; it must have 2", numbers_.size());
      tensor_.begin = numbers_[0];
      tensor_.end = numbers_[1];
    }
    state_ = State::tensor;
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::metadata_value) {
      header_.metadata.emplace(key_, value);
      state_ = State::metadata;
      return true;
    }
    if (state_ != State::field || field_ != "dtype") Unexpected(fmt::format("the text '{}'", value));
    for (const auto& [name, dtype] : kDtypes)
      if (value == name) dtype_ = dtype;
    if (!dtype_) FailTensor("the dtype '{}' is not supported; supported: F64, F32, BF16, F16, I64, I32, U8", value);
    state_ = State::tensor;
    return true;
  }

  bool null() override { Unexpected("null"); }
  bool boolean(bool) override { Unexpected("a truth value"); }
  bool number_integer(number_integer_t value) override { Unexpected(fmt::format("the negative number {}", value)); }
  bool number_float(number_float_t, const string_t& text) override { Unexpected(fmt::format("the number {}", text)); }
  bool binary(binary_t&) override { Unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    Fail("the header is not JSON at byte {}", position);
  }

 private:
  enum class State { start, top, entry, metadata, metadata_value, tensor, field, array, done };

  template <typename... Args>
  [[noreturn]] void Fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw UserError("{}: not a safetensors file: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void FailTensor(fmt::format_string<Args...> format, Args&&... args) const {
    throw UserError("{}: tensor '{}': {}", file_, tensor_.spec.name, fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void Unexpected(const std::string& what) const {
    switch (state_) {
      case State::start:
        Fail("the header is {}; it must be an object", what);
      case State::entry:
        Fail("the value of '{}' is {}; it must be an object", key_, what);
      case State::metadata_value:
        Fail("__metadata__ '{}' is {}; it must be a text", key_, what);
      case State::field:
        FailTensor("{} is {}; it must be {}", field_, what, field_ == "dtype" ? "a text" : "an array");
      default:
        FailTensor("{} holds {}; it must hold non-negative integers below 2^64", field_, what);
    }
  }

  void FinishTensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (fields_.count(field) == 0) FailTensor("the field '{}' is missing", field);
    tensor_.spec.dtype = *dtype_;
    // Strides are products of max(d, 1), so these must fit even when the tensor is empty.
    int64_t elements = 1, extent = 1, bytes = 0;
    bool overflow = false;
    for (const int64_t d : tensor_.spec.shape) {
      overflow |= __builtin_mul_overflow(extent, std::max<int64_t>(d, 1), &extent);
      elements = overflow ? 0 : elements * d;
    }
    const auto size = static_cast<int64_t>(c10::elementSize(*dtype_));
    overflow |= __builtin_mul_overflow(extent, size, &extent);
    if (overflow) FailTensor("the shape [{}] has more than 2^63 bytes", fmt::join(tensor_.spec.shape, ", "));
    bytes = elements * size;
    if (tensor_.begin > tensor_.end) FailTensor("data_offsets [{}, {}] are reversed", tensor_.begin, tensor_.end);
    if (tensor_.end > header_.data_bytes)
      FailTensor("data_offsets [{}, {}] lie beyond the end of the file, which has {} bytes of data (truncated?)",
                 tensor_.begin, tensor_.end, header_.data_bytes);
    if (tensor_.end - tensor_.begin != static_cast<uint64_t>(bytes))
      FailTensor("the shape [{}] of {} needs {} bytes, data_offsets [{}, {}] hold {}",
                 fmt::join(tensor_.spec.shape, ", "), SafetensorsDtype(*dtype_), bytes, tensor_.begin, tensor_.end,
                 tensor_.end - tensor_.begin);
    header_.entries.push_back(std::move(tensor_));
  }

  const std::string& file_;
  SafetensorsHeader& header_;
  State state_ = State::start;
  std::set<std::string> names_;
  std::string key_;
  SafetensorsEntry tensor_;
  std::optional<at::ScalarType> dtype_;
  std::set<std::string> fields_;
  std::string field_;
  std::vector<uint64_t> numbers_;
};

void CheckCoverage(const SafetensorsHeader& header, const std::string& file) {
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin < at)
      throw UserError("{}: tensor '{}': bytes [{}, {}) overlap another tensor's", file, entry.spec.name, entry.begin,
                      entry.end);
    if (entry.begin > at)
      throw UserError("{}: tensor '{}': bytes [{}, {}) before it belong to no tensor", file, entry.spec.name, at,
                      entry.begin);
    at = entry.end;
  }
  if (at != header.data_bytes)
    throw UserError("{}: not a safetensors file: the last {} bytes belong to no tensor", file, header.data_bytes - at);
}

}  // namespace

std::string SafetensorsDtype(at::ScalarType dtype) {
  for (const auto& [name, known] : kDtypes)
    if (dtype == known) return name;
  throw UserError("tensors of type {} cannot be stored; supported: F64, F32, BF16, F16, I64, I32, U8",
                  c10::toString(dtype));
}

at::ScalarType ParseSafetensorsDtype(std::string_view text) {
  for (const auto& [name, known] : kDtypes)
    if (text == name) return known;
  throw UserError("there is no tensor type '{}'", text);
}

uint64_t CheckSafetensorsPrefix(std::string_view prefix, uint64_t file_bytes, const std::string& file) {
  if (prefix.size() < 8)
    throw UserError("{}: not a safetensors file: it has {} bytes, the header's length alone takes 8", file, file_bytes);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(prefix[i]);
  if (length > kMaxSafetensorsHeader)
    throw UserError("{}: not a safetensors file: a header of {} bytes; the most is {}", file, length,
                    kMaxSafetensorsHeader);
  if (length > file_bytes - 8)
    throw UserError("{}: not a safetensors file: its header of {} bytes is cut, the file has {} (truncated?)", file,
                    length, file_bytes);
  return length;
}

SafetensorsHeader ParseSafetensorsHeader(std::string_view json, uint64_t file_bytes, const std::string& file) {
  PENSTOCK_CHECK(8 + json.size() <= file_bytes, "a header of {} bytes in a file of {}", json.size(), file_bytes);
  SafetensorsHeader header;
  header.data_start = 8 + json.size();
  header.data_bytes = file_bytes - header.data_start;
  HeaderSax sax(file, header);
  nlohmann::json::sax_parse(json, &sax);
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  CheckCoverage(header, file);
  return header;
}

std::string FormatSafetensorsHeader(const std::vector<TensorSpec>& specs,
                                    const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  int64_t at = 0;
  for (const TensorSpec& spec : specs) {
    PENSTOCK_CHECK(spec.name != "__metadata__" && !json.contains(spec.name), "two tensors named '{}'", spec.name);
    json[spec.name] = {
        {"dtype", SafetensorsDtype(spec.dtype)}, {"shape", spec.shape}, {"data_offsets", {at, at + spec.bytes()}}};
    at += spec.bytes();
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception&) {
    throw UserError("a tensor's name or the metadata of a safetensors file is not UTF-8");
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(text.size() >> (8 * i)));
  return out + text;
}

}  // namespace penstock::checkpoint
