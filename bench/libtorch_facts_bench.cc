// bench/libtorch_facts_bench.cc
//
// What this libtorch does on this machine, in one table: speed of matrix products and element-wise operations, thread
// defaults, and which equalities of bits hold. docs/decisions.md ("libtorch 2.13: what we measured again") keeps a
// dated copy. Run it after changing the pinned libtorch or the machine; about 30 s on two cores.
//
// Times are the smallest of several repetitions on one intra-op thread. "yes"/"no" is equality of bits.
#include <ATen/Config.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

using at::Tensor;

double SecondsOf(const std::function<void()>& run, int repetitions = 7) {
  run();
  double best = 1e30;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// A fixed pattern without a generator: values in [-1, 1).
Tensor Values(at::IntArrayRef shape, at::ScalarType type = at::kFloat, int64_t salt = 0) {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  Tensor t = at::arange(n, at::kLong).add_(salt).mul_(2654435761).bitwise_and_(0xffffff);
  return t.to(at::kDouble).mul_(2.0 / 0x1000000).sub_(1.0).to(type).reshape(shape);
}

bool Same(const Tensor& a, const Tensor& b) { return at::equal(a.contiguous(), b.contiguous()); }

const char* Word(bool yes) { return yes ? "yes" : "no"; }

// The same values `elements` further into a fresh block.
Tensor Shifted(const Tensor& t, int64_t elements) {
  Tensor block = at::empty({t.numel() + elements}, t.options());
  Tensor view = block.narrow(0, elements, t.numel()).view(t.sizes());
  view.copy_(t);
  return view;
}

void Line(const std::string& what, const std::string& result) { fmt::print("{:<64} {}\n", what, result); }

void MatrixProducts() {
  fmt::print("\nGEMM, GFLOP/s on one thread (N N | x W^T | dY^T x)\n");
  for (const auto& [type, name] : {std::pair{at::kFloat, "fp32"}, {at::kDouble, "fp64"}, {at::kBFloat16, "bf16"}}) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1024, 256, 768},
                                  {1024, 256, 1024},
                                  {1024, 1024, 256},
                                  {128, 256, 8192},
                                  {1024, 768, 3072},
                                  {64, 128, 512}}) {
      const Tensor x = Values({m, k}, type), w = Values({n, k}, type), wt = w.t().contiguous(),
                   dy = Values({m, n}, type);
      const double flops = 2e-9 * static_cast<double>(m * n * k);
      const int repetitions = type == at::kBFloat16 ? 3 : 7;
      Line(fmt::format("  {} {} x {} -> {}", name, m, k, n),
           fmt::format("{:6.1f} | {:6.1f} | {:6.1f}", flops / SecondsOf([&] { at::mm(x, wt); }, repetitions),
                       flops / SecondsOf([&] { at::mm(x, w.t()); }, repetitions),
                       flops / SecondsOf([&] { at::mm(dy.t(), x); }, repetitions)));
    }
  }
  const Tensor x = Values({1024, 256}), w = Values({1024, 256});
  const Tensor plain = at::mm(x, w.t());
  at::globalContext().setFloat32MatmulPrecision("medium");
  const double seconds = SecondsOf([&] { at::mm(x, w.t()); });
  Line("  float32 matmul precision 'medium', 1024 x 256 -> 1024",
       fmt::format("{:6.1f}, same bits: {}", 0.536870912 / seconds, Word(Same(plain, at::mm(x, w.t())))));
  at::globalContext().setFloat32MatmulPrecision("highest");
  const Tensor big = Values({1024, 1024});
  Line("  rounding a 1 M matrix to bf16 and back",
       fmt::format("{:.2f} ns per element",
                   SecondsOf([&] { big.to(at::kBFloat16).to(at::kFloat); }) / static_cast<double>(big.numel()) * 1e9));
}

void Elementwise() {
  fmt::print("\nElement-wise, ns per element, 1 M elements, one thread (forward | backward)\n");
  const Tensor x = Values({1024, 1024}), g = Values({1024, 1024}, at::kFloat, 5);
  const double n = static_cast<double>(x.numel()) * 1e-9;
  Line("  gelu(tanh)", fmt::format("{:.2f} | {:.2f}", SecondsOf([&] { at::gelu(x, "tanh"); }) / n,
                                   SecondsOf([&] { at::gelu_backward(g, x, "tanh"); }) / n));
  Line("  gelu(erf)", fmt::format("{:.2f} | {:.2f}", SecondsOf([&] { at::gelu(x, "none"); }) / n,
                                  SecondsOf([&] { at::gelu_backward(g, x, "none"); }) / n));
  Line("  silu", fmt::format("{:.2f} | {:.2f}", SecondsOf([&] { at::silu(x); }) / n,
                             SecondsOf([&] { at::silu_backward(g, x); }) / n));
  Line("  add", fmt::format("{:.2f}", SecondsOf([&] { at::add(x, g); }) / n));
  Line("  exp", fmt::format("{:.2f}", SecondsOf([&] { at::exp(x); }) / n));
  Line("  softmax", fmt::format("{:.2f}", SecondsOf([&] { at::softmax(x, -1); }) / n));
  const Tensor gain = Values({1024}), bias = Values({1024});
  const auto [y, mean, rstd] = at::native_layer_norm(x, {1024}, gain, bias, 1e-5);
  Line("  layer_norm",
       fmt::format("{:.2f} | {:.2f}", SecondsOf([&] { at::native_layer_norm(x, {1024}, gain, bias, 1e-5); }) / n,
                   SecondsOf([&] {
                     at::native_layer_norm_backward(g, x, {1024}, mean, rstd, gain, bias, {true, true, true});
                   }) / n));
  for (const int64_t t : {256, 1024}) {
    const Tensor q = Values({1, 4, t, 64}), k = Values({1, 4, t, 64}, at::kFloat, 3),
                 v = Values({1, 4, t, 64}, at::kFloat, 7);
    const double flops = 4e-9 * 4 * 64 * static_cast<double>(t * t);
    Line(fmt::format("  SDPA causal forward, 4 heads x {} x 64, GFLOP/s counted in full", t),
         fmt::format("flash {:.1f}, math {:.1f}",
                     flops / SecondsOf([&] { at::scaled_dot_product_attention(q, k, v, {}, 0.0, true); }),
                     flops / SecondsOf([&] { at::_scaled_dot_product_attention_math(q, k, v, {}, 0.0, true); })));
  }
}

struct Attention {
  Tensor out, dq, dk, dv;
  friend bool operator==(const Attention& a, const Attention& b) {
    return Same(a.out, b.out) && Same(a.dq, b.dq) && Same(a.dk, b.dk) && Same(a.dv, b.dv);
  }
};

Attention RunAttention(Tensor q, Tensor k, Tensor v, const Tensor& g) {
  at::AutoGradMode grad(true);
  q = q.detach().requires_grad_(true), k = k.detach().requires_grad_(true), v = v.detach().requires_grad_(true);
  const Tensor out = at::scaled_dot_product_attention(q, k, v, {}, 0.0, true);
  const auto grads = torch::autograd::grad({out}, {q, k, v}, {g});
  return {out.detach(), grads[0], grads[1], grads[2]};
}

void AttentionBits() {
  fmt::print("\nSDPA (causal, forward and all gradients): equal bits?\n");
  for (const auto& [type, name] : {std::pair{at::kFloat, "fp32"}, {at::kDouble, "fp64"}}) {
    for (const int64_t t : {16, 17, 250, 512}) {
      const Tensor q = Values({4, 4, t, 32}, type, 1), k = Values({4, 4, t, 32}, type, 2);
      const Tensor v = Values({4, 4, t, 32}, type, 3), g = Values({4, 4, t, 32}, type, 4);
      const Attention first = RunAttention(q, k, v, g);
      bool rerun = true, shifted = true;
      for (int i = 0; i < 5; ++i) rerun = rerun && first == RunAttention(q, k, v, g);
      for (int64_t s = 1; s <= 16; ++s)
        shifted = shifted && first == RunAttention(Shifted(q, s), Shifted(k, s), Shifted(v, s), Shifted(g, s));
      const Attention one = RunAttention(q.narrow(0, 1, 1).contiguous(), k.narrow(0, 1, 1).contiguous(),
                                         v.narrow(0, 1, 1).contiguous(), g.narrow(0, 1, 1).contiguous());
      const bool cut = Same(first.out.narrow(0, 1, 1), one.out) && Same(first.dq.narrow(0, 1, 1), one.dq) &&
                       Same(first.dk.narrow(0, 1, 1), one.dk) && Same(first.dv.narrow(0, 1, 1), one.dv);
      at::set_num_threads(2);
      const bool threads = first == RunAttention(q, k, v, g);
      at::set_num_threads(1);
      bool two = true;
      std::vector<std::thread> ranks;
      std::vector<Attention> results(2);
      for (int r = 0; r < 2; ++r)
        ranks.emplace_back([&, r] {
          at::set_num_threads(1);
          results[r] = RunAttention(q, k, v, g);
        });
      for (std::thread& rank : ranks) rank.join();
      two = first == results[0] && first == results[1];
      const Tensor reference = std::get<0>(at::_scaled_dot_product_attention_math(q.to(at::kDouble), k.to(at::kDouble),
                                                                                  v.to(at::kDouble), {}, 0.0, true));
      Line(fmt::format("  {} T = {}", name, t),
           fmt::format("rerun {}, offset 1..16 {}, two ranks {}, threads 1 = 2 {}, batch cut {}, error {:.1e}",
                       Word(rerun), Word(shifted), Word(two), Word(threads), Word(cut),
                       (first.out.to(at::kDouble) - reference).abs().max().item<double>()));
    }
  }
}

// `run` returns what must be equal.
void OperationBits(const std::string& name, const std::function<Tensor(const Tensor&)>& run, const Tensor& x) {
  const Tensor first = run(x);
  bool rerun = true, shifted = true;
  for (int i = 0; i < 5; ++i) rerun = rerun && Same(first, run(x));
  for (int64_t s = 1; s <= 16; ++s) shifted = shifted && Same(first, run(Shifted(x, s)));
  at::set_num_threads(2);
  const bool threads = Same(first, run(x));
  at::set_num_threads(1);
  Line("  " + name,
       fmt::format("rerun {}, offset 1..16 {}, threads 1 = 2 {}", Word(rerun), Word(shifted), Word(threads)));
}

void Bits() {
  fmt::print("\nEqual bits?\n");
  const Tensor x = Values({1024, 256}), w = Values({1024, 256}, at::kFloat, 3),
               dy = Values({1024, 1024}, at::kFloat, 4);
  const Tensor gain = Values({256}), ids = at::arange(1024).remainder(97);
  OperationBits(
      "x W^T", [&](const Tensor& t) { return at::mm(t, w.t()); }, x);
  OperationBits(
      "x W^T, x of 7 rows", [&](const Tensor& t) { return at::mm(t, w.t()); }, x.narrow(0, 0, 7).contiguous());
  OperationBits(
      "x W^T, x of 1 row", [&](const Tensor& t) { return at::mm(t, w.t()); }, x.narrow(0, 0, 1).contiguous());
  OperationBits(
      "dY W", [&](const Tensor& t) { return at::mm(dy, t); }, w);
  OperationBits(
      "dY^T x", [&](const Tensor& t) { return at::mm(dy.t(), t); }, x);
  OperationBits(
      "dY^T x, fp64", [&](const Tensor& t) { return at::mm(dy.to(at::kDouble).t(), t); }, x.to(at::kDouble));
  OperationBits(
      "addmm(b, x, W^T)", [&](const Tensor& t) { return at::addmm(dy[0], t, w.t()); }, x);
  OperationBits(
      "sum of rows", [&](const Tensor& t) { return t.sum(0); }, dy);
  OperationBits(
      "softmax", [&](const Tensor& t) { return at::softmax(t, -1); }, x);
  OperationBits(
      "logsumexp", [&](const Tensor& t) { return at::logsumexp(t, -1); }, x);
  OperationBits(
      "gelu(tanh)", [&](const Tensor& t) { return at::gelu(t, "tanh"); }, x);
  OperationBits(
      "silu", [&](const Tensor& t) { return at::silu(t); }, x);
  OperationBits(
      "layer_norm", [&](const Tensor& t) { return at::layer_norm(t, {256}, gain, gain); }, x);
  OperationBits(
      "layer_norm, gradient of the gain",
      [&](const Tensor& t) {
        const auto [y, mean, rstd] = at::native_layer_norm(t, {256}, gain, gain, 1e-5);
        return std::get<1>(at::native_layer_norm_backward(w, t, {256}, mean, rstd, gain, gain, {true, true, true}));
      },
      x);
  OperationBits(
      "embedding_dense_backward", [&](const Tensor& t) { return at::embedding_dense_backward(t, ids, 97, -1, false); },
      x);
  const Tensor all = at::mm(x, w.t()), narrow_w = w.narrow(0, 0, 16).contiguous(), all_narrow = at::mm(x, narrow_w.t());
  for (const int64_t rows : {1, 7, 64, 100, 512})
    Line(fmt::format("  rows of x W^T alike at M = 1024 and M = {}", rows),
         fmt::format("N = 1024 {}, N = 16 {}", Word(Same(all.narrow(0, 0, rows), at::mm(x.narrow(0, 0, rows), w.t()))),
                     Word(Same(all_narrow.narrow(0, 0, rows), at::mm(x.narrow(0, 0, rows), narrow_w.t())))));
  const Tensor flat = Values({1000});
  const auto tail = [&](const std::function<Tensor(const Tensor&)>& f) {
    const Tensor whole = f(flat);
    bool same = true;
    for (int64_t n = 1; n < 64; ++n) same = same && Same(whole.narrow(0, 0, n), f(flat.narrow(0, 0, n).contiguous()));
    return same;
  };
  Line("  vector tail like its body", fmt::format("gelu(tanh) {}, gelu(erf) {}, silu {}, exp {}, sigmoid {}",
                                                  Word(tail([](const Tensor& t) { return at::gelu(t, "tanh"); })),
                                                  Word(tail([](const Tensor& t) { return at::gelu(t, "none"); })),
                                                  Word(tail([](const Tensor& t) { return at::silu(t); })),
                                                  Word(tail([](const Tensor& t) { return at::exp(t); })),
                                                  Word(tail([](const Tensor& t) { return at::sigmoid(t); }))));
  // Rows of a multiple of the vector length hide it, and so does a transposed dense matrix.
  const Tensor odd = Values({16, 37});
  const std::vector<Tensor> views = {odd.t().contiguous().t(), at::cat({odd, odd}, -1).narrow(-1, 0, 37),
                                     odd.repeat_interleave(2, -1).slice(-1, 0, at::nullopt, 2)};
  const auto strided = [&](const std::function<Tensor(const Tensor&)>& f) {
    return std::all_of(views.begin(), views.end(), [&](const Tensor& view) { return Same(f(odd), f(view)); });
  };
  Line("  strided input like contiguous",
       fmt::format("gelu(tanh) {}, silu {}, exp {}, sum(0) {}",
                   Word(strided([](const Tensor& t) { return at::gelu(t, "tanh"); })),
                   Word(strided([](const Tensor& t) { return at::silu(t); })),
                   Word(strided([](const Tensor& t) { return at::exp(t); })),
                   Word(strided([](const Tensor& t) { return t.sum(0); }))));
}

void Autograd() {
  fmt::print("\nAutograd\n");
  at::AutoGradMode grad(true);
  bool weight = true, bias = true, input = true;
  for (const int64_t rows : {64, 100, 1024}) {
    Tensor x = Values({4, rows / 4, 256}).requires_grad_(true), w = Values({512, 256}).requires_grad_(true);
    Tensor b = Values({512}).requires_grad_(true);
    const Tensor g = Values({4, rows / 4, 512}, at::kFloat, 9);
    const auto grads = torch::autograd::grad({at::linear(x, w, b)}, {x, w, b}, {g});
    at::NoGradGuard no_grad;
    const Tensor g2 = g.reshape({-1, 512}), x2 = x.detach().reshape({-1, 256});
    input = input && Same(grads[0].reshape({-1, 256}), at::mm(g2, w));
    weight = weight && Same(grads[1], at::mm(g2.t(), x2));
    bias = bias && Same(grads[2], g2.sum(0));
  }
  Line("  split backward = backward of at::linear",
       fmt::format("input {}, weight {}, bias {}", Word(input), Word(weight), Word(bias)));

  Tensor w = Values({512, 256}).requires_grad_(true);
  Tensor alias = w.detach().requires_grad_(true);
  const Tensor x = Values({64, 256});
  Tensor out = at::gelu(at::mm(x, alias.t()), "tanh");
  const Tensor g = at::ones_like(out);
  const Tensor plain = torch::autograd::grad({out}, {alias}, {g})[0];
  out = at::gelu(at::mm(x, alias.t()), "tanh");
  torch::autograd::Edge root(out.grad_fn(), out.output_nr());
  Tensor handed_over = out.detach();
  out.reset();
  const auto edges = torch::autograd::Engine::get_default_engine().execute(
      {root}, {g}, false, false, false, {torch::autograd::impl::gradient_edge(alias)});
  Line("  backward from the edge after the output was dropped", Word(Same(plain, edges[0])));
  out = at::mm(x, alias.t());
  out.sum().backward();
  Line("  gradient of a weight arrives contiguous", Word(alias.grad().is_contiguous()));
  Line("  default block aligned to 64 bytes",
       Word(reinterpret_cast<uintptr_t>(at::empty({1000}).data_ptr()) % 64 == 0));
  const Tensor four = Values({4});
  Line("  detach().requires_grad_(), us", fmt::format("{:.2f}", SecondsOf([&] {
                                                                  for (int i = 0; i < 1000; ++i)
                                                                    four.detach().requires_grad_(true);
                                                                }) * 1e3));
}

}  // namespace

int main() {
  fmt::print("libtorch {}, capability {}, MKL {}, oneDNN {}, OpenMP {}\n", TORCH_VERSION, at::get_cpu_capability(),
             Word(at::hasMKL()), Word(at::hasMKLDNN()), Word(at::hasOpenMP()));
  fmt::print("{}\n", at::show_config());
  fmt::print("default intra-op threads {}, inter-op {}, hardware {}\n", at::get_num_threads(),
             at::get_num_interop_threads(), std::thread::hardware_concurrency());
  at::set_num_threads(1);
  MatrixProducts();
  Elementwise();
  AttentionBits();
  Bits();
  Autograd();
  return 0;
}
