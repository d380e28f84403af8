#include "checkpoint/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <type_traits>

#include "base/error.h"
#include "checkpoint/safetensors_header.h"

namespace penstock::checkpoint {
namespace {

constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();

// Maps the bits of a float to an integer that is monotonic in its value, both zeros to 0.
template <typename Bits>
int64_t Ordered(Bits bits) {
  const auto x = static_cast<std::make_signed_t<Bits>>(bits);
  return x >= 0 ? static_cast<int64_t>(x)
                : static_cast<int64_t>(std::numeric_limits<std::make_signed_t<Bits>>::min()) - static_cast<int64_t>(x);
}

template <typename Bits>
uint64_t UlpDistance(Bits a, Bits b) {
  const int64_t x = Ordered(a), y = Ordered(b);
  return x > y ? static_cast<uint64_t>(x) - static_cast<uint64_t>(y)
               : static_cast<uint64_t>(y) - static_cast<uint64_t>(x);
}

template <typename T, typename Bits>
void CompareFloats(const at::Tensor& a, const at::Tensor& b, double bound,
                   const std::function<double(int64_t)>& allowance, TensorDifference& d) {
  const T* x = a.const_data_ptr<T>();
  const T* y = b.const_data_ptr<T>();
  double largest = 0.0;
  double beyond = 0.0;  // largest difference that the allowance does not cover
  bool finite_on_one_side = false;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const auto u = static_cast<double>(x[i]), v = static_cast<double>(y[i]);
    if (std::isfinite(u)) largest = std::max(largest, std::abs(u));
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
    const auto p = std::bit_cast<Bits>(x[i]), q = std::bit_cast<Bits>(y[i]);
    if (p == q || (std::isnan(u) && std::isnan(v))) continue;
    const uint64_t ulp = std::isnan(u) || std::isnan(v) ? kFar : UlpDistance(p, q);
    if (d.count++ == 0) {
      d.element = i;
      d.a = u;
      d.b = v;
      d.ulp = ulp;
    }
    d.max_ulp = std::max(d.max_ulp, ulp);
    if (std::isfinite(u) && std::isfinite(v)) {
      d.max_absolute = std::max(d.max_absolute, std::abs(u - v));
      beyond = std::max(beyond, std::abs(u - v) - (allowance ? allowance(i) : 0.0));
    } else {
      finite_on_one_side = true;
      d.max_absolute = std::numeric_limits<double>::infinity();
    }
  }
  if (d.count == 0) return;
  d.max_relative = largest > 0.0 ? d.max_absolute / largest : d.max_absolute;
  const double beyond_relative = largest > 0.0 ? beyond / largest : beyond;
  d.verdict = finite_on_one_side || beyond_relative > bound ? Verdict::fault : Verdict::rounding;
}

template <typename T>
void CompareIntegers(const at::Tensor& a, const at::Tensor& b, TensorDifference& d) {
  const T* x = a.const_data_ptr<T>();
  const T* y = b.const_data_ptr<T>();
  for (int64_t i = 0; i < a.numel(); ++i) {
    if (x[i] == y[i]) continue;
    if (d.count++ == 0) {
      d.element = i;
      d.a = static_cast<double>(x[i]);
      d.b = static_cast<double>(y[i]);
    }
    d.max_absolute = std::max(d.max_absolute, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  }
  if (d.count > 0) d.verdict = Verdict::fault;
}

TensorDifference Fault(const std::string& name, std::string reason) {
  TensorDifference d;
  d.name = name;
  d.verdict = Verdict::fault;
  d.reason = std::move(reason);
  return d;
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::equal:
      return "equal";
    case Verdict::rounding:
      return "rounding";
    case Verdict::fault:
      return "fault";
  }
  throw InternalError("not a verdict");
}

std::string TensorDifference::ToString() const {
  if (verdict == Verdict::equal) return fmt::format("{}: equal", name);
  if (!reason.empty()) return fmt::format("{}: {}: {}", name, VerdictName(verdict), reason);
  return fmt::format(
      "{}: {}: {} elements differ, first [{}]: {:.17g} against {:.17g} ({}); largest {:.3g} absolute, "
      "{:.3g} relative",
      name, VerdictName(verdict), count, element, a, b,
      ulp == kFar ? std::string("not comparable") : fmt::format("{} ulp", ulp), max_absolute, max_relative);
}

void Comparison::Add(TensorDifference difference) {
  ++tensors;
  verdict = std::max(verdict, difference.verdict);
  if (difference.verdict != Verdict::equal) differences.push_back(std::move(difference));
}

std::string Comparison::ToString() const {
  std::string text = fmt::format("{}: {} of {} tensors differ", VerdictName(verdict), differences.size(), tensors);
  // Faults before rounding: with many tensors the one to look at must be among those that are shown.
  std::vector<const TensorDifference*> shown;
  for (const TensorDifference& d : differences) shown.push_back(&d);
  std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return a->verdict > b->verdict; });
  for (size_t i = 0; i < shown.size() && i < 10; ++i) text += "\n  " + shown[i]->ToString();
  if (differences.size() > 10) text += fmt::format("\n  and {} more", differences.size() - 10);
  return text;
}

TensorDifference CompareTensor(const std::string& name, const at::Tensor& a, const at::Tensor& b,
                               const RoundingBounds& bounds) {
  PENSTOCK_CHECK(a.defined() && b.defined() && a.is_cpu() && b.is_cpu(), "tensor '{}' is not on the CPU", name);
  if (a.sizes() != b.sizes())
    return Fault(name, fmt::format("shape [{}] against [{}]", fmt::join(a.sizes(), ", "), fmt::join(b.sizes(), ", ")));
  if (a.scalar_type() != b.scalar_type())
    return Fault(name,
                 fmt::format("{} against {}", SafetensorsDtype(a.scalar_type()), SafetensorsDtype(b.scalar_type())));
  TensorDifference d;
  d.name = name;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  if (x.numel() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0) return d;
  switch (x.scalar_type()) {
    case at::kDouble:
      CompareFloats<double, uint64_t>(x, y, bounds.fp64, bounds.allowance, d);
      break;
    case at::kFloat:
      CompareFloats<float, uint32_t>(x, y, bounds.fp32, bounds.allowance, d);
      break;
    case at::kBFloat16:
      CompareFloats<c10::BFloat16, uint16_t>(x, y, bounds.half, bounds.allowance, d);
      break;
    case at::kHalf:
      CompareFloats<c10::Half, uint16_t>(x, y, bounds.half, bounds.allowance, d);
      break;
    case at::kLong:
      CompareIntegers<int64_t>(x, y, d);
      break;
    case at::kInt:
      CompareIntegers<int32_t>(x, y, d);
      break;
    case at::kByte:
      CompareIntegers<uint8_t>(x, y, d);
      break;
    default:
      throw UserError("tensor '{}' of type {} cannot be compared", name, c10::toString(x.scalar_type()));
  }
  return d;
}

namespace {

Comparison CompareSources(const TensorSource& a, const TensorSource& b, const BoundsOf& bounds_of) {
  Comparison comparison;
  std::map<std::string, int> in_b;
  for (size_t i = 0; i < b.specs.size(); ++i) in_b.emplace(b.specs[i].name, static_cast<int>(i));
  for (size_t i = 0; i < a.specs.size(); ++i) {
    const std::string& name = a.specs[i].name;
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      comparison.Add(Fault(name, "only on the first side"));
      continue;
    }
    comparison.Add(CompareTensor(name, a.fetch(static_cast<int>(i)), b.fetch(other->second), bounds_of(name)));
    in_b.erase(other);
  }
  for (const TensorSpec& spec : b.specs)
    if (in_b.count(spec.name) != 0) comparison.Add(Fault(spec.name, "only on the second side"));
  return comparison;
}

}  // namespace

Comparison Compare(const TensorSource& a, const TensorSource& b, const RoundingBounds& bounds) {
  return CompareSources(a, b, [&](const std::string&) { return bounds; });
}

Comparison Compare(const NamedTensors& a, const NamedTensors& b, const RoundingBounds& bounds) {
  return Compare(FromMemory(a), FromMemory(b), bounds);
}

Comparison Compare(const NamedTensors& a, const NamedTensors& b, const BoundsOf& bounds_of) {
  return CompareSources(FromMemory(a), FromMemory(b), bounds_of);
}

}  // namespace penstock::checkpoint
