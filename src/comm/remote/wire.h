// src/comm/remote/wire.h
//
// Frames as bytes: numbers in the order of the machine (all ranks run one program on one kind of machine), texts and
// lists with their length in front. Reading past the end is InternalError.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace penstock::comm {

class FrameWriter {
 public:
  template <typename T>
  FrameWriter& Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  FrameWriter& PutBytes(std::string_view bytes) {
    Put(static_cast<uint64_t>(bytes.size()));
    bytes_.append(bytes);
    return *this;
  }
  template <typename T>
  FrameWriter& PutList(const std::vector<T>& list) {
    Put(static_cast<uint64_t>(list.size()));
    for (const T& value : list) Put(value);
    return *this;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class FrameReader {
 public:
  explicit FrameReader(std::string_view bytes) : bytes_(bytes) {}
  bool AtEnd() const { return bytes_.empty(); }
  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    PENSTOCK_CHECK(bytes_.size() >= sizeof(T), "a frame ends {} bytes early", sizeof(T) - bytes_.size());
    T value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  // Valid as long as the frame.
  std::string_view GetBytes() {
    const auto size = Get<uint64_t>();
    PENSTOCK_CHECK(bytes_.size() >= size, "a frame ends {} bytes early", size - bytes_.size());
    const std::string_view bytes = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return bytes;
  }
  template <typename T>
  std::vector<T> GetList() {
    const auto size = Get<uint64_t>();
    PENSTOCK_CHECK(bytes_.size() / sizeof(T) >= size, "a list of {} in {} bytes", size, bytes_.size());
    std::vector<T> list(size);
    for (T& value : list) value = Get<T>();
    return list;
  }

 private:
  std::string_view bytes_;
};

}  // namespace penstock::comm
