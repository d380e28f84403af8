// src/model/build/spec_writer.h
//
// Collects the parameters of the layer that is being described: names them after the layer's path, appends them to the
// spec in the order of the calls, and lists them in the layer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/spec.h"

namespace penstock::model {

inline SizeFormula PerSample(int64_t n) { return {.per_sample = n}; }
inline SizeFormula PerToken(int64_t n) { return {.per_token = n}; }
inline SizeFormula PerPair(int64_t n) { return {.per_token_pair = n}; }

class SpecWriter {
 public:
  // Both must outlive the writer; `layer` has its path already.
  SpecWriter(ModelSpec& spec, LayerSpec& layer) : spec_(spec), layer_(layer) {}

  void Matrix(const std::string& name, int64_t out, int64_t in, double std) { Tensor(name, {out, in}, std); }
  void Tensor(const std::string& name, std::vector<int64_t> shape, double std) {
    Add({.name = Path(name), .shape = std::move(shape), .init = Init::normal, .std = std, .decay = true});
  }
  void Vector(const std::string& name, int64_t extent, Init init) {
    Add({.name = Path(name), .shape = {extent}, .init = init});
  }
  // name.weight [out, in] and name.bias [out]
  void Linear(const std::string& name, int64_t out, int64_t in, double std) {
    Matrix(name + ".weight", out, in, std);
    Vector(name + ".bias", out, Init::zeros);
  }
  // Gain and bias of a LayerNorm or BatchNorm.
  void Norm(const std::string& name, int64_t extent) {
    Vector(name + ".weight", extent, Init::ones);
    Vector(name + ".bias", extent, Init::zeros);
  }
  // A parameter of an earlier layer, by its whole name.
  void Share(const std::string& canonical) { layer_.parameters.push_back(spec_.parameter_index(canonical)); }

 private:
  std::string Path(const std::string& name) const { return layer_.path + "." + name; }
  void Add(ParameterSpec parameter) {
    layer_.parameters.push_back(static_cast<int>(spec_.parameters.size()));
    spec_.parameters.push_back(std::move(parameter));
  }
  ModelSpec& spec_;
  LayerSpec& layer_;
};

}  // namespace penstock::model
