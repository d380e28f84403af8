#include "base/optimizer_config.h"

namespace penstock::optim {

void OptimizerConfig::Declare(config::Section& s) {
  const auto adam = [this] { return name == "adamw"; };
  const auto sgd = [this] { return name == "sgd"; };
  const auto cosine = [this] { return schedule == "cosine"; };
  const std::string adam_text = "optimizer.name = 'adamw'";
  const std::string sgd_text = "optimizer.name = 'sgd'";
  const std::string cosine_text = "optimizer.schedule = 'cosine'";
  s.Help("How parameters are updated. The learning rate counts applied updates: a skipped step does not advance it.");
  s.String("name", &name, {.choices = {"adamw", "sgd"}, .help = "which optimizer"});
  s.Real("lr", &lr, {.above = 0.0, .help = "learning rate after the warm-up"});
  s.String("schedule", &schedule,
           {.choices = {"constant", "cosine"}, .help = "how the learning rate goes on after the warm-up"});
  s.Real(
      "min_lr", &min_lr,
      {.min = 0.0, .help = "learning rate at the end of the cosine", .only_if = cosine, .only_if_text = cosine_text});
  s.Int("warmup", &warmup, {.min = 0, .help = "updates over which the learning rate rises from 0", .unit = "updates"});
  s.Int("decay_steps", &decay_steps,
        {.min = 0,
         .help = "update at which the cosine ends; 0: at the end of the run",
         .unit = "updates",
         .only_if = cosine,
         .only_if_text = cosine_text});
  s.Real("beta1", &beta1,
         {.min = 0.0, .below = 1.0, .help = "decay of the first moment", .only_if = adam, .only_if_text = adam_text});
  s.Real("beta2", &beta2,
         {.min = 0.0, .below = 1.0, .help = "decay of the second moment", .only_if = adam, .only_if_text = adam_text});
  s.Real("eps", &eps,
         {.min = 0.0, .help = "added to the root of the second moment", .only_if = adam, .only_if_text = adam_text});
  s.Real("momentum", &momentum,
         {.min = 0.0,
          .below = 1.0,
          .help = "decay of the momentum buffer; 0: none",
          .only_if = sgd,
          .only_if_text = sgd_text});
  s.Bool("nesterov", &nesterov,
         {.help = "Nesterov's form of momentum",
          .only_if = [this] { return name == "sgd" && momentum > 0.0; },
          .only_if_text = "optimizer.name = 'sgd' and optimizer.momentum > 0"});
  s.Real("weight_decay", &weight_decay,
         {.min = 0.0, .help = "weight decay: decoupled (adamw), or added to the gradient (sgd)"});
  s.String("decay", &decay,
           {.choices = {"matrices", "all"},
            .help = "which parameters decay: those with two or more dimensions, or all",
            .only_if = [this] { return weight_decay > 0.0; },
            .only_if_text = "optimizer.weight_decay > 0"});
  s.Real("clip", &clip, {.min = 0.0, .help = "largest global gradient norm; gradients are scaled to it. 0: off"});
  s.String("clip_norm", &clip_norm,
           {.choices = {"l2", "inf"},
            .help = "which norm is clipped",
            .only_if = [this] { return clip > 0.0; },
            .only_if_text = "optimizer.clip > 0"});
  s.Require({"lr", "min_lr"}, [this]() -> std::string {
    return schedule == "cosine" && min_lr > lr ? "min_lr is larger than lr; it is where the cosine ends" : "";
  });
  s.Require({"warmup", "decay_steps"}, [this]() -> std::string {
    return decay_steps > 0 && decay_steps <= warmup ? "the cosine ends before the warm-up does" : "";
  });
}

int StatesPerParameter(const OptimizerConfig& config) {
  if (config.name == "adamw") return 2;
  return config.momentum == 0.0 ? 0 : 1;
}

}  // namespace penstock::optim
