#include "session/run/run_readme.h"

#include <fmt/format.h>

#include "report/run_files.h"
#include "session/command_line.h"
#include "session/run/find_tokenizer.h"

namespace penstock::session {
std::string RunReadme(const LoadedSettings& settings, const std::string& directory, const std::string& started_in,
                      bool has_tokenizer_files) {
  const Settings& s = settings.values;
  const std::string here = ShellWord(directory);
  // The resolved configuration says everything but where it lies, and must not start anew.
  std::string resume = fmt::format("penstock train {} --set {}", ShellWord(directory + "/config.toml"),
                                   ShellWord(fmt::format("run.dir='{}'", directory)));
  if (s.run.overwrite) resume += " run.overwrite=false";
  if (s.checkpoint.resume != "auto") resume += " checkpoint.resume=auto";

  std::string text = fmt::format(
      "A training run of Penstock: {} with {} layers of width {}, up to step {}.\n\nWhat can be done with it, from "
      "{}:\n\n",
      s.model.family, s.model.gpt.layers, s.model.gpt.hidden, s.train.steps, ShellWord(started_in));
  const auto command = [&text](const std::string& line, const std::string& what) {
    text += fmt::format("  {}\n      {}\n", line, what);
  };
  command(resume, "go on after the newest checkpoint; train.steps=N on the same line makes the run longer");
  command("penstock report " + here, "where the time went, and how far the prediction was off");
  command("penstock generate " + here + " --prompt \"text\"", "text from the trained model");
  command("penstock eval " + here + " --data FILE", "perplexity, bits per byte and accuracy on a text");
  command("penstock checkpoint inspect " + here, "what is in the newest checkpoint; `verify` reads all of it");

  text += "\nWhat lies here:\n\n";
  const auto file = [&text](std::string_view name, std::string_view what) {
    text += fmt::format("  {:<26} {}\n", name, what);
  };
  file("config.toml", "the configuration, every key with its value and where that came from");
  file("checkpoints/", "step-N/: weights, optimizer state and position in the data after step N; latest: the newest");
  if (has_tokenizer_files)
    file(std::string(kTokenizerFolder) + "/", "the tokenizer the weights belong to; `generate` and `eval` use it");
  file(report::kMetricsFile, "loss, gradient norm, speed and memory of every step, a JSON object a line");
  if (s.log.csv) file(report::kCsvFile, "the same as a table");
  if (s.log.tensorboard)
    file(std::string(report::kTensorBoardFolder) + "/",
         fmt::format("the same for TensorBoard: tensorboard --logdir {}", ShellWord(directory + "/tensorboard")));
  file(report::kHtmlFile, "the report as a page for a browser, written at the end");
  file(report::kPlanFile, "what was predicted before the start");
  file(report::kScheduleFile, "the schedule: what every rank does in a step");
  file(report::kMeasuredTimelineFile, "what every rank did in the recorded steps, and when");
  file(report::kPredictedTimelineFile, "what it was predicted to do");
  file(report::kTraceFile, "the recorded steps for chrome://tracing or Perfetto");
  file(report::kDrawingFile, "a drawing of one step");
  file(report::kProfileFile, "measured times that `cluster.profile` takes for further predictions");
  file("run.json", "what is computed, to recognise the run when it is started again");
  file("start_checkpoint", "where the weights came from, when the run did not begin with initial ones");
  file("lock", "held while a training writes here");
  return text + "\nThe documentation says more: docs/run_directory.md and docs/generate_eval.md.\n";
}

}  // namespace penstock::session
