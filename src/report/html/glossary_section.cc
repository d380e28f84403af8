// The words of the page, for who meets them here first.
#include <string_view>
#include <utility>

#include "report/html/facts.h"
#include "report/html/markup.h"

namespace penstock::report::html {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"stage", "consecutive layers of the model; a rank runs one or more of them"},
    {"micro-batch", "a part of the batch that goes through the stages on its own; numbers in boxes are its index"},
    {"forward, backward",
     "a stage computes a micro-batch; backward_input and backward_weight are the halves of a "
     "split backward"},
    {"recompute", "the forward of a stage again, because its activations were not kept"},
    {"update", "the optimizer on one unit of parameters; a rank has one or more units"},
    {"task:norm, finite_clip", "the norm of gradients, the check that they are finite, and clipping"},
    {"collective:...",
     "all ranks of a group together: reduce sums gradients of replicas, sum_uses those of a parameter "
     "that several stages use, gather_statistics collects losses and norms"},
    {"boundary", "the activations (or their gradients) that go from one stage to the next"},
    {"busy", "the compute stream of a rank works. Where ranks share cores, waiting for a core is in it"},
    {"bubble", "the rest of the step. Its causes, each moment has one:"},
    {"warm-up", "before the first layer computation of the rank in the step"},
    {"drain", "after its last one, until the step is over"},
    {"imbalance", "the rank that it waits for is still computing, or has not joined the collective"},
    {"message", "the rank that it waits for is done, and the message is on its way"},
    {"collective", "all members have joined, and it is not over"},
    {"offload", "a copy between memory tiers"},
    {"host", "nothing is waited for: the program between actions, sending included"},
    {"critical path",
     "from the end of the step back to its start, at every moment the one thing that the end had to "
     "wait for; its pieces add up to the step"},
    {"predicted, measured", "the simulation of the schedule before the run; the run by the clock"},
};

}  // namespace

std::string GlossarySection() {
  std::string out = "<section id=\"words\"><details><summary>Words on this page</summary>\n<dl class=\"facts\">\n";
  for (const auto& [word, meaning] : kWords) Add(out, "<div><dt>{}</dt><dd>{}</dd></div>\n", word, meaning);
  return out + "</dl></details></section>\n";
}

}  // namespace penstock::report::html
