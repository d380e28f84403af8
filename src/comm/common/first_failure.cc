#include "comm/common/first_failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <typeinfo>

#include "comm/thread_ranks.h"

namespace penstock::comm {
namespace {

std::string TextOf(const std::exception_ptr& what) {
  try {
    std::rethrow_exception(what);
  } catch (const c10::Error& e) {
    return e.what_without_backtrace();  // the frames of libtorch help nobody who reads the message
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace

FailureRecord RecordOf(int rank, const std::exception_ptr& what) {
  FailureRecord record{.rank = rank, .text = TextOf(what)};
  try {
    std::rethrow_exception(what);
  } catch (const UserError&) {
    record.kind = FailureRecord::Kind::user;
  } catch (const OrderMismatch&) {
    record.kind = FailureRecord::Kind::order_mismatch;
  } catch (const InternalError&) {
    record.kind = FailureRecord::Kind::internal;
  } catch (const PeerLost& e) {
    record.kind = FailureRecord::Kind::peer_lost;
    record.lost_rank = e.rank();
  } catch (const RankFailed&) {
    record.kind = FailureRecord::Kind::foreign;
  } catch (const WorldError&) {
    record.kind = FailureRecord::Kind::world;
  } catch (...) {
    record.kind = FailureRecord::Kind::foreign;
  }
  return record;
}

std::exception_ptr ExceptionOf(const FailureRecord& record) {
  switch (record.kind) {
    case FailureRecord::Kind::user:
      return std::make_exception_ptr(UserError(record.text));
    case FailureRecord::Kind::order_mismatch:
      return std::make_exception_ptr(OrderMismatch(record.text));
    case FailureRecord::Kind::internal:
      return std::make_exception_ptr(InternalError(record.text));
    case FailureRecord::Kind::peer_lost:
      return std::make_exception_ptr(PeerLost(record.lost_rank, record.text));
    case FailureRecord::Kind::world:
      return std::make_exception_ptr(WorldError(record.text));
    case FailureRecord::Kind::foreign:
      break;
  }
  return std::make_exception_ptr(RankFailed(record.text));
}

bool FirstFailure::Set(int rank, std::exception_ptr what) {
  std::lock_guard lock(mutex_);
  if (failed_.load(std::memory_order_relaxed)) return false;
  first_ = std::move(what);
  record_ = RecordOf(rank, first_);
  failed_.store(true, std::memory_order_release);
  return true;
}

void FirstFailure::Replace(const FailureRecord& record) {
  std::lock_guard lock(mutex_);
  if (record_ == record) return;
  first_ = ExceptionOf(record);
  record_ = record;
}

FailureRecord FirstFailure::Record() const {
  std::lock_guard lock(mutex_);
  return record_;
}

void FirstFailure::ThrowFor(int rank, const std::string& doing) const {
  std::lock_guard lock(mutex_);
  if (record_.kind == FailureRecord::Kind::order_mismatch) throw OrderMismatch(record_.text);
  throw PeerLost(record_.rank,
                 fmt::format("rank {} gives up {}: rank {} failed: {}", rank, doing, record_.rank, record_.text));
}

void FirstFailure::Rethrow() const {
  std::lock_guard lock(mutex_);
  if (!failed_.load(std::memory_order_relaxed)) return;
  const std::string text = record_.rank < 0 ? record_.text : fmt::format("rank {}: {}", record_.rank, record_.text);
  try {
    std::rethrow_exception(first_);
  } catch (const Error& e) {
    // The message gains the rank where the type is one that can be made again; a derived type stays what it is.
    if (typeid(e) == typeid(UserError)) throw UserError(text);
    if (typeid(e) == typeid(OrderMismatch)) throw OrderMismatch(text);
    if (typeid(e) == typeid(InternalError)) throw InternalError(text);
    if (typeid(e) == typeid(WorldError)) throw WorldError(text);
    if (typeid(e) == typeid(RankFailed)) throw RankFailed(text);
    if (const auto* lost = dynamic_cast<const PeerLost*>(&e)) throw PeerLost(lost->rank(), text);
    throw;
  } catch (...) {
    std::throw_with_nested(RankFailed(text));
  }
}

}  // namespace penstock::comm
