#include "session/settings.h"

#include "cost/stack.h"
#include "schedule/builder.h"
#include "schedule/route.h"

namespace penstock::session {
namespace {

void DeclareModel(config::Section& s, model::ModelConfig* m) {
  const auto llama = [m] { return m->family == "llama"; };
  const std::string llama_text = "model.family = 'llama'";
  model::GptConfig* g = &m->gpt;
  s.Help("The model: a family and its sizes.");
  s.String("family", &m->family, {.choices = Registry<model::ModelFamily>::Names(), .help = "model family"});
  s.String(
      "reference", &m->reference,
      {.help = "a published model of `penstock list reference-models` instead of family and sizes; only simulated"});
  s.Int("layers", &g->layers, {.min = 1, .max = model::kMaxLayers, .help = "transformer blocks"});
  s.Int("hidden", &g->hidden, {.min = 1, .max = model::kMaxHidden, .help = "width of the residual stream"});
  s.Int("heads", &g->heads, {.min = 1, .max = model::kMaxHidden, .help = "attention heads; divides hidden"});
  s.Int("kv_heads", &g->kv_heads,
        {.min = 0,
         .help = "key and value heads (grouped-query attention); 0: as many as heads",
         .only_if = llama,
         .only_if_text = llama_text});
  s.Int("ffn", &g->ffn,
        {.min = 0,
         .max = model::kMaxFfn,
         .help = "width of the feed-forward; 0: 4 hidden (gpt2), 8/3 hidden rounded up to 8 (llama)"});
  s.Int("vocabulary", &g->vocabulary,
        {.min = 0, .max = model::kMaxVocabulary, .help = "rows of the embedding; 0: the tokenizer's vocabulary"});
  s.Int("context", &g->context,
        {.min = 0, .max = model::kMaxContext, .help = "longest sequence; 0: data.sequence", .unit = "tokens"});
  s.Bool("tied", &g->tied, {.help = "the head shares the token embedding"});
  s.Real("dropout", &g->dropout,
         {.min = 0.0, .below = 1.0, .help = "after the embedding and on both residual branches"});
  s.Real("attention_dropout", &g->attention_dropout,
         {.min = 0.0,
          .below = 1.0,
          .help = "on attention probabilities",
          .only_if = [g] { return g->attention == "reference"; },
          .only_if_text = "model.attention = 'reference'"});
  s.Real("norm_eps", &g->norm_eps, {.above = 0.0, .help = "added to the variance in norms"});
  s.Real("rope_base", &g->rope_base,
         {.above = 0.0, .help = "base of the rotary angles", .only_if = llama, .only_if_text = llama_text});
  const auto scaled = [g] { return g->rope_scaling != "none"; };
  const auto llama3 = [g] { return g->rope_scaling == "llama3"; };
  s.String("rope_scaling", &g->rope_scaling,
           {.choices = {"none", "linear", "llama3"},
            .help = "slower rotation for longer contexts: linear (all angles), llama3 (the slow ones)",
            .only_if = llama,
            .only_if_text = llama_text});
  s.Real("rope_factor", &g->rope_factor,
         {.above = 0.0,
          .help = "angles are divided by it",
          .only_if = scaled,
          .only_if_text = "model.rope_scaling is not 'none'"});
  s.Real("rope_low_frequency", &g->rope_low_frequency,
         {.above = 0.0,
          .help = "wavelengths above rope_original_context over it are divided by rope_factor",
          .only_if = llama3,
          .only_if_text = "model.rope_scaling = 'llama3'"});
  s.Real("rope_high_frequency", &g->rope_high_frequency,
         {.above = 0.0,
          .help = "wavelengths below rope_original_context over it stay",
          .only_if = llama3,
          .only_if_text = "model.rope_scaling = 'llama3'"});
  s.Int("rope_original_context", &g->rope_original_context,
        {.min = 1,
         .help = "the context that the model was trained for before",
         .unit = "tokens",
         .only_if = llama3,
         .only_if_text = "model.rope_scaling = 'llama3'"});
  s.Real("init_std", &g->init_std, {.above = 0.0, .help = "standard deviation of initial weights"});
  s.String(
      "attention", &g->attention,
      {.choices = {"fused", "reference"}, .help = "kernel: fused (no matrix of probabilities is kept) or reference"});
  s.Int("loss_chunk", &g->loss_chunk, {.min = 1, .help = "rows of logits alive at once in the loss", .unit = "tokens"});
}

}  // namespace

void RunSettings::Declare(config::Section& s) {
  s.Help("Where the run is kept, and its seed.");
  s.String("dir", &dir, {.help = "run directory; empty: runs/<name of the config file>"});
  s.Bool("overwrite", &overwrite,
         {.help = "move what is in run.dir aside (to <dir>.old-N) and start anew, also when it is this run"});
  s.Int("seed", &seed, {.min = 0, .help = "of initial weights, data order and dropout"});
}

void TrainSettings::Declare(config::Section& s) {
  s.Help(
      "The training loop. A step takes `batch` samples in ceil(batch / micro_batch) micro-batches, over all replicas.");
  s.Int("steps", &steps, {.min = 1, .help = "updates of the whole run", .unit = "steps"});
  s.Int("batch", &batch, {.min = 1, .max = 1 << 22, .help = "samples of one step", .unit = "samples"});
  s.Int("micro_batch", &micro_batch,
        {.min = 1, .max = 1 << 22, .help = "samples of one micro-batch", .unit = "samples"});
  s.String("on_nonfinite", &on_nonfinite,
           {.choices = {"stop", "skip"},
            .help = "when a loss or gradient is not finite: end the run before the update, or leave the update out; "
                    "gradients of fp16 have rules of their own (numerics.loss_scale)"});
  s.Int("max_skipped", &max_skipped,
        {.min = 1,
         .help = "updates left out in a row before the run ends all the same",
         .unit = "steps",
         .only_if = [this] { return on_nonfinite == "skip"; },
         .only_if_text = "train.on_nonfinite = 'skip'"});
  s.Require({"sample_tokens", "sample_prompt"}, [this]() -> std::string {
    return sample_tokens > 0 && sample_prompt.empty() ? "the prompt is empty; give at least one character" : "";
  });
  s.Int("sample_tokens", &sample_tokens,
        {.min = 0, .help = "tokens to generate at the end; 0: none", .unit = "tokens"});
  s.String("sample_prompt", &sample_prompt,
           {.help = "what the sample starts with",
            .only_if = [this] { return sample_tokens > 0; },
            .only_if_text = "train.sample_tokens > 0"});
  s.Real("sample_temperature", &sample_temperature,
         {.min = 0.0,
          .help = "of the sample; 0: the likeliest token",
          .only_if = [this] { return sample_tokens > 0; },
          .only_if_text = "train.sample_tokens > 0"});
}

void ClusterSettings::Declare(config::Section& s) {
  s.Help("What a plan is priced on: `penstock simulate`, and the prediction of a training run.");
  s.String(
      "name", &name,
      {.help = "a cluster of `penstock list clusters`, a file (docs/clusters.md), or this-machine, which `penstock "
               "doctor --calibrate` writes"});
  s.String("profile", &profile,
           {.help = "measured times that override computed ones: profile.json of a run, or several "
                    "with commas; empty: none"});
  s.String("order", &order,
           {.choices = {"tensor_data_pipeline", "tensor_pipeline_data"},
            .help = "how ranks are laid over the devices, what is nearest first"});
  s.String(
      "arithmetic", &arithmetic,
      {.choices = {"auto", "own", "mixed"},
       .help =
           "own: what this project's runtime keeps and sends; mixed: 16-bit weights, activations and messages "
           "with fp32 gradients and master weights; auto: own on CPUs or unless numerics.precision is bf16 or fp16"});
  s.String("stack", &stack,
           {.choices = Registry<cost::Stack>::Names(),
            .help = "what the training software overlaps and fuses (docs/exam.md)"});
  s.String("transport", &transport,
           {.choices = {"channelled", "eager", "blocking"}, .help = "how messages of a rank wait for each other"});
  s.Bool("fold", &fold, {.help = "identical replicas are simulated once"});
  s.Bool("contention", &contention, {.help = "cores of a machine and network cards of a node are shared"});
}

void ParallelSettings::Declare(config::Section& s) {
  s.Help("The layout: data x pipeline ranks, and the schedule. It does not change what is computed.");
  s.Int("data", &data, {.min = 1, .max = 4096, .help = "replicas", .unit = "ranks"});
  s.Int("pipeline", &pipeline, {.min = 1, .max = 4096, .help = "pipeline positions", .unit = "ranks"});
  s.Int("tensor", &tensor,
        {.min = 1,
         .max = 4096,
         .help = "devices that run every stage together, tensor-parallel; only simulated",
         .unit = "devices"});
  s.Bool("sequence_parallel", &sequence_parallel,
         {.help = "what a tensor-parallel group replicates is split along the sequence; only simulated",
          .only_if = [this] { return tensor > 1; },
          .only_if_text = "parallel.tensor > 1"});
  s.Int("chunks", &chunks, {.min = 1, .max = 4096, .help = "stages per position"});
  s.String("schedule", &schedule,
           {.help = "name of a schedule (penstock list schedules), or a schedule file (a path with a '/' or '.')"});
  s.String("route", &route, {.help = "placement of stages on positions; empty: the schedule's default"});
  s.String(
      "stages", &stages,
      {.help =
           "how layers are cut into stages: balanced (by cost), even (by count), or blocks per stage such as '3,3,2'"});
  s.String(
      "recompute", &recompute,
      {.help = "none; full: keep only the inputs of a stage and run its forward again before the backward; "
               "stages such as '0,2': full in these alone; selective: the core of attention again (only simulated)"});
  s.String("split_backward", &split_backward,
           {.choices = {"as_ordered", "always", "never"},
            .help = "input and weight half of backward apart: as the schedule has it, always, or never"});
}

void NumericsSettings::Declare(config::Section& s) {
  s.Help("Arithmetic (docs/numerics.md).");
  s.String("precision", &precision,
           {.choices = {"fp32", "fp64", "bf16", "fp16"},
            .help = "bf16, fp16: mixed, fp32 master weights and accumulation; fp16 with a scaled loss"});
  s.Bool("reproducible", &reproducible, {.help = "the same bits in any layout: canonical summation tree"});
  loss_scale.Declare(
      s, [this] { return precision == "fp16"; }, "numerics.precision = 'fp16'");
}

LossScaleConfig NumericsSettings::MakeLossScale() const {
  LossScaleConfig config = loss_scale;
  config.enabled = precision == "fp16";
  return config;
}

void RuntimeSettings::Declare(config::Section& s) {
  s.Help("How ranks run on this machine.");
  s.Bool("serial", &serial, {.help = "every action waits for its own completion: the reference semantics, slower"});
  s.Int("intra_op_threads", &intra_op_threads,
        {.min = 1, .max = 1024, .help = "threads of one operation in each rank"});
  s.Real("deadline", &deadline,
         {.above = 0.0, .max = 1e7, .help = "longest wait for a peer before it counts as lost", .unit = "s"});
  s.Bytes("memory_limit", &memory_limit,
          {.min = 0,
           .help = "refuse a plan whose estimate for this machine is larger; 0: the machine's memory",
           .unit = "bytes"});
}

void CheckpointSettings::Declare(config::Section& s) {
  s.Help("Checkpoints do not depend on the layout.");
  s.Int("every", &every, {.min = 0, .help = "steps between checkpoints; 0: none on the way", .unit = "steps"});
  s.Bool("at_end", &at_end, {.help = "save after the last step"});
  s.Int("keep", &keep, {.min = 0, .help = "how many of the newest are kept; 0: all"});
  s.Int("keep_every", &keep_every,
        {.min = 0,
         .help = "beside the newest, those of every so many steps are kept; 0: none",
         .unit = "steps",
         .only_if = [this] { return keep > 0; },
         .only_if_text = "checkpoint.keep > 0"});
  s.Bytes("snapshot", &snapshot,
          {.min = 0,
           .help = "how much of its state a rank may copy, to have it written while training goes on; the rest is "
                   "written before the next step; 0: all of it",
           .unit = "bytes"});
  s.Bool("self_check", &self_check,
         {.help = "the first step after loading must give the loss and norm that the run which saved had; costs a step "
                  "at the end of a run"});
  s.String("resume", &resume,
           {.help = "auto: go on from the newest valid checkpoint of run.dir, if there is one; never; or a checkpoint "
                    "to start from"});
  s.String(
      "weights", &weights,
      {.help = "a checkpoint or run whose weights the run starts with, at step 0 and with a fresh optimizer; once it "
               "has checkpoints of its own, it goes on from those"});
  s.Bool("other_rope", &other_rope,
         {.help = "the run may rotate otherwise (model.rope_*) than the weights it starts from were trained with, as "
                  "when a context is extended"});
}

void ReportSettings::Declare(config::Section& s) {
  s.Help("What is recorded for the report.");
  s.Int("timeline_first", &timeline_first,
        {.min = 0, .help = "first step whose events are kept (counted from where the run starts or resumes)"});
  s.Int("timeline_steps", &timeline_steps, {.min = 0, .help = "steps whose events are kept", .unit = "steps"});
}

void EvalSettings::Declare(config::Section& s, const data::DataConfig* data) {
  s.Help(
      "Evaluations while a run goes on, on what data.validation_fraction or the token files hold back: loss, bits per "
      "byte and accuracy, in the metrics of the step.");
  s.Int("every", &every,
        {.min = 0,
         .help = "steps between evaluations, and one after the last step; 0: none",
         .unit = "steps",
         .only_if = [data] { return data->validation_fraction > 0 || data->source == "tokens"; },
         .only_if_text = "data.validation_fraction > 0 or data.source = 'tokens'"});
  s.Int("batches", &batches,
        {.min = 0,
         .help = "train.batch times as many samples, always the first ones of the validation part; 0: all of it",
         .only_if = [this] { return every > 0; },
         .only_if_text = "eval.every > 0"});
}

void LogSettings::Declare(config::Section& s) {
  s.Help("In which further forms the metrics of the steps are kept (docs/run_directory.md); metrics.jsonl always is.");
  s.Bool("csv", &csv, {.help = "metrics.csv: a table with one row per step"});
  s.Bool("tensorboard", &tensorboard, {.help = "tensorboard/: event files for TensorBoard"});
}

LoadedSettings::LoadedSettings() {
  values.model.gpt.vocabulary = 0;
  values.model.gpt.context = 0;
  config.Add("run", [this](config::Section& s) { values.run.Declare(s); });
  config.Add("train", [this](config::Section& s) { values.train.Declare(s); });
  config.Add("model", [this](config::Section& s) { DeclareModel(s, &values.model); });
  config.Add("data", [this](config::Section& s) { values.data.Declare(s); });
  config.Add("optimizer", [this](config::Section& s) { values.optimizer.Declare(s); });
  config.Add("parallel", [this](config::Section& s) { values.parallel.Declare(s); });
  config.Add("numerics", [this](config::Section& s) { values.numerics.Declare(s); });
  config.Add("runtime", [this](config::Section& s) { values.runtime.Declare(s); });
  config.Add("checkpoint", [this](config::Section& s) { values.checkpoint.Declare(s); });
  config.Add("cluster", [this](config::Section& s) { values.cluster.Declare(s); });
  config.Add("report", [this](config::Section& s) { values.report.Declare(s); });
  config.Add("eval", [this](config::Section& s) { values.eval.Declare(s, &values.data); });
  config.Add("log", [this](config::Section& s) { values.log.Declare(s); });
}

LoadedSettings::LoadedSettings(const std::string& file, const std::vector<std::string>& assignments)
    : LoadedSettings() {
  path = file;
  config.LoadFile(file);
  for (const std::string& assignment : assignments) config.Set(assignment);
  config.Finish();
}

}  // namespace penstock::session
