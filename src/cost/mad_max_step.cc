#include "cost/mad_max_step.h"

#include <utility>

#include "base/error.h"

namespace penstock::cost {
namespace {

std::string Named(const char* what, size_t layer) { return fmt::format("{}.{}.", what, layer); }

template <typename Time>
class Step {
 public:
  Step(const std::vector<MadMaxLayerTimes<Time>>& layers, const MadMaxOrder& order) : layers_(layers), order_(order) {
    bool joined = false;
    for (size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].lookup && !dense_.empty())
        throw UserError("layer {} is a lookup after a dense layer; lookups come first", i);
      if (!layers[i].lookup) {
        if (layers[i].joins_lookups && std::exchange(joined, true))
          throw UserError("layer {} joins the lookups, but an earlier one does already", i);
        dense_.push_back(i);
      }
    }
    if (!layers.empty() && layers[0].lookup && !joined)
      throw UserError("there are lookups, but no dense layer joins them; mark the first that needs their rows");
  }

  TwoStreamTrace<Time> Run() {
    for (size_t i = 0; i < layers_.size() && layers_[i].lookup; ++i) {
      Place("f", i, Work::lookup, layers_[i].forward, {});
      Place("a2a.f", i, Work::all_to_all, layers_[i].exchange, {Named("f", i)});
    }
    for (size_t k = 0; k < dense_.size(); ++k) Forward(k);
    if (order_.training) Backward();
    return std::move(trace_);
  }

 private:
  void Place(const char* what, size_t layer, Work work, const Time& duration, const std::vector<std::string>& after) {
    if (duration > Time(0)) trace_.Add(Named(what, layer), work, duration, after);
  }

  void Forward(size_t k) {
    const size_t i = dense_[k];
    const auto& layer = layers_[i];
    std::vector<std::string> window;
    if (k >= 2) window.push_back(Named("f", dense_[k - 2]));
    Place("ag.f", i, Work::all_gather, layer.gather, window);
    std::vector<std::string> after = {Named("ag.f", i)};
    if (k > 0) after.push_back(Named("ar.f", dense_[k - 1]));
    if (layer.joins_lookups) {
      after.push_back("a2a.f.");
      for (size_t e = 0; layers_[e].lookup; ++e) after.push_back(Named("f", e));
    }
    Place("f", i, Work::gemm, layer.forward, after);
    Place("ar.f", i, Work::all_reduce, layer.tensor_reduce, {Named("f", i)});
  }

  void Backward() {
    std::vector<size_t> order;
    for (auto it = dense_.rbegin(); it != dense_.rend(); ++it)
      if (layers_[*it].backward_runs) order.push_back(*it);
    // Computes in the order of the step, to find the one two before.
    std::vector<std::string> computes;
    for (const size_t i : dense_) computes.push_back(Named("f", i));
    const auto gather = [&](size_t j) {
      if (j >= order.size()) return;
      std::vector<std::string> window;
      const size_t visit = dense_.size() + j;
      if (order_.limit_backward_gathers && visit >= 2) window.push_back(computes[visit - 2]);
      Place("ag.b", order[j], Work::all_gather, layers_[order[j]].gather, window);
    };
    gather(0);
    std::string blocks = dense_.empty() ? "" : Named("ar.f", dense_.back());
    for (size_t j = 0; j < order.size(); ++j) {
      gather(j + 1);
      const size_t i = order[j];
      const auto& layer = layers_[i];
      Place("b", i, Work::gemm, layer.backward, {Named("ag.b", i), blocks});
      computes.push_back(Named("b", i));
      Place("ar.b", i, Work::all_reduce, layer.tensor_reduce, {Named("b", i)});
      blocks = Named("ar.b", i);
      if (layer.trains) {
        Place("rs", i, Work::reduce_scatter, layer.reduce_scatter, {Named("b", i)});
        Place("gr", i, Work::all_reduce, layer.gradient_reduce, {Named("b", i), Named("rs", i)});
      }
      if (layer.joins_lookups) LookupGradients({Named("b", i), Named("ar.b", i)});
    }
    for (size_t e = 0; e < layers_.size() && layers_[e].lookup; ++e)
      if (layers_[e].trains) Place("b", e, Work::lookup, layers_[e].backward, {Named("a2a.b", e), Named("gr", e)});
  }

  void LookupGradients(const std::vector<std::string>& after) {
    for (size_t e = 0; layers_[e].lookup; ++e) {
      if (!layers_[e].trains) continue;
      Place("a2a.b", e, Work::all_to_all, layers_[e].exchange, after);
      std::vector<std::string> exchanged = after;
      exchanged.push_back(Named("a2a.b", e));
      Place("gr", e, Work::all_reduce, layers_[e].gradient_reduce, exchanged);
    }
  }

  const std::vector<MadMaxLayerTimes<Time>>& layers_;
  MadMaxOrder order_;
  std::vector<size_t> dense_;
  TwoStreamTrace<Time> trace_;
};

}  // namespace

template <typename Time>
TwoStreamTrace<Time> TraceMadMax(const std::vector<MadMaxLayerTimes<Time>>& layers, const MadMaxOrder& order) {
  return Step<Time>(layers, order).Run();
}

template TwoStreamTrace<Rational> TraceMadMax(const std::vector<MadMaxLayerTimes<Rational>>&, const MadMaxOrder&);
template TwoStreamTrace<double> TraceMadMax(const std::vector<MadMaxLayerTimes<double>>&, const MadMaxOrder&);

}  // namespace penstock::cost
