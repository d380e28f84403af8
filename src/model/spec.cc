#include "model/spec.h"

#include <set>

#include "base/error.h"

namespace penstock::model {

int64_t ParameterSpec::numel() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

SizeFormula operator+(SizeFormula a, SizeFormula b) {
  return {a.per_sample + b.per_sample, a.per_token + b.per_token, a.per_token_pair + b.per_token_pair};
}

SizeFormula operator*(int64_t factor, SizeFormula a) {
  return {factor * a.per_sample, factor * a.per_token, factor * a.per_token_pair};
}

int64_t BoundaryTensor::numel(int64_t batch, int64_t length) const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent == kBatch ? batch : extent == kLength ? length : extent;
  return n;
}

int64_t ModelSpec::parameter_count() const {
  int64_t n = 0;
  for (const ParameterSpec& parameter : parameters) n += parameter.numel();
  return n;
}

int ModelSpec::parameter_index(std::string_view name) const {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name == name) return static_cast<int>(i);
  throw InternalError(fmt::format("model family '{}' has no parameter '{}'", family, name));
}

int64_t ModelSpec::forward_flops(int64_t batch, int64_t length) const {
  int64_t n = 0;
  for (const LayerSpec& layer : layers) n += layer.forward_flops(batch, length);
  return n;
}

int64_t SavedBytes(const LayerSpec& layer, int64_t batch, int64_t length, Precision precision) {
  const int64_t wide = layer.saved(batch, length) + layer.saved_statistics(batch, length);
  int64_t operands = layer.saved_operands(batch, length);
  if (OperandBytes(precision) != WideBytes(precision)) operands += layer.operands_in_saved(batch, length);
  return wide * WideBytes(precision) + operands * OperandBytes(precision);
}

int64_t BoundaryBytes(const LayerSpec& layer, int64_t batch, int64_t length, Precision precision) {
  int64_t n = 0;
  for (const BoundaryTensor& tensor : layer.boundary) n += tensor.numel(batch, length);
  return n * WideBytes(precision);
}

void CheckSpec(const ModelSpec& spec) {
  std::set<std::string> names;
  for (const ParameterSpec& parameter : spec.parameters)
    PENSTOCK_CHECK(names.insert(parameter.name).second, "two parameters named '{}'", parameter.name);
  std::set<int> used;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    PENSTOCK_CHECK(names.insert(layer.path).second, "two layers named '{}'", layer.path);
    PENSTOCK_CHECK(layer.boundary.empty() == (i + 1 == spec.layers.size()), "boundary of layer '{}'", layer.path);
    for (const int parameter : layer.parameters) {
      PENSTOCK_CHECK(parameter >= 0 && parameter < static_cast<int>(spec.parameters.size()), "layer '{}' lists {}",
                     layer.path, parameter);
      used.insert(parameter);
    }
  }
  for (size_t i = 0; i < spec.parameters.size(); ++i)
    PENSTOCK_CHECK(used.count(static_cast<int>(i)) == 1, "no layer uses '{}'", spec.parameters[i].name);
}

}  // namespace penstock::model
