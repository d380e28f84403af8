// src/model/spec.h
//
// What a model is made of, without libtorch: parameters, layers, what crosses between layers, and what each layer
// costs. The layers of a model form a chain: layer i feeds layer i + 1. nn builds the computing layers from the same
// spec; a test compares the two.
//
// Units: flops are 2 x multiply-accumulates of matrix products, attention scores counted in full (not halved for the
// causal mask); nothing else is counted. Sizes are elements, turned into bytes by `SavedBytes`.
// Threads: a ModelSpec is immutable after it was built; read it from any thread.
#pragma once

#include <any>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/operation.h"
#include "model/precision.h"
#include "model/size_formula.h"

namespace penstock::model {

enum class Init : uint8_t { zeros, ones, normal };

struct ParameterSpec {
  std::string name{};            // canonical, e.g. "blocks.3.attn.qkv.weight"; unique in the model
  std::vector<int64_t> shape{};  // libtorch order: Linear [out, in]
  Init init = Init::zeros;
  double std = 0.0;    // of Init::normal
  bool decay = false;  // weight decay applies (matrices yes, biases and norm gains no)
  int64_t numel() const;
};

// Symbolic extents of boundary tensors.
inline constexpr int64_t kBatch = -1;
inline constexpr int64_t kLength = -2;

// A tensor that crosses from a layer to the next: wide (fp32; fp64 in fp64 runs), contiguous.
struct BoundaryTensor {
  std::string name{};
  std::vector<int64_t> shape{};  // kBatch and kLength stand for the micro-batch's
  int64_t numel(int64_t batch, int64_t length) const;
};

struct LayerSpec {
  std::string path{};             // "embed", "blocks.3", "head"; keys dropout masks, names the layer in messages
  std::string kind{};             // what nn builds: "embed", "block", "head"
  bool repeated = false;          // one of the alike layers that an even partition counts
  std::vector<int> parameters{};  // indices into ModelSpec::parameters; listed by two layers = shared, each is a use

  SizeFormula forward_flops{};
  SizeFormula input_flops{};   // backward, gradient of the inputs (the half that cannot be deferred)
  SizeFormula weight_flops{};  // backward, gradients of deferrable weights

  // Elements kept from forward to backward, the input of the layer included, without recomputation.
  SizeFormula saved{};              // wide in every precision
  SizeFormula saved_operands{};     // only GEMM operands
  SizeFormula operands_in_saved{};  // GEMM operands that are also in `saved`: free, unless operands are narrower
  SizeFormula saved_statistics{};   // mean, 1/std, log-sum-exp: small, wide
  int64_t workspace = 0;            // wide elements alive inside the layer only, whatever the micro-batch (logit chunk)

  std::vector<BoundaryTensor> boundary{};  // what crosses to the next layer; empty for the last

  std::vector<Operation> operations{};  // of the forward, in order; their flops add up to forward_flops
};

struct ModelSpec {
  std::string family;                     // name in Registry<ModelFamily>
  std::vector<ParameterSpec> parameters;  // canonical order (norms are folded in it, docs/numerics.md R9)
  std::vector<LayerSpec> layers;
  int64_t vocabulary = 0;
  int64_t context = 0;  // longest sequence
  int64_t hidden = 0;
  int64_t table_bytes = 0;  // constants that nn computes once per process and all layers read (angles of rotations)
  std::any config;          // the family's own config struct (GptConfig), for nn

  int64_t parameter_count() const;                   // shared parameters once
  int parameter_index(std::string_view name) const;  // InternalError when there is none
  int64_t forward_flops(int64_t batch, int64_t length) const;
};

int64_t SavedBytes(const LayerSpec& layer, int64_t batch, int64_t length, Precision precision);
int64_t BoundaryBytes(const LayerSpec& layer, int64_t batch, int64_t length, Precision precision);

// Throws InternalError when names repeat, an index is out of range, a parameter has no use, a layer but the last lacks
// a boundary. Every family's builder ends with it.
void CheckSpec(const ModelSpec& spec);

}  // namespace penstock::model
