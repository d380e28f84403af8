#include "session/run/convert_command.h"

#include <any>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "checkpoint/checkpoint.h"
#include "huggingface/model_folder.h"
#include "nn/layer.h"
#include "session/run/find_tokenizer.h"
#include "session/run/open_model.h"
#include "session/run/prepare.h"

namespace penstock::session {
namespace {

namespace fs = std::filesystem;
using model::GptConfig;

// A folder that becomes `to` when it is complete.
class PendingFolder {
 public:
  explicit PendingFolder(std::string to) : to_(std::move(to)) {
    while (to_.size() > 1 && to_.back() == '/') to_.pop_back();
    if (to_.empty()) throw UserError("checkpoint convert: say where to write: checkpoint convert FROM TO");
    if (files_.Exists(to_)) throw UserError("'{}' is there already; choose another name or move it away", to_);
    std::string pattern = to_ + ".tmp-XXXXXX";
    files_.CreateFolders(FolderOf(to_));
    if (::mkdtemp(pattern.data()) == nullptr)
      throw WorldError(fmt::format("cannot make the folder '{}': {}", pattern, std::strerror(errno)));
    path_ = pattern;
  }
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;
  ~PendingFolder() {
    std::error_code ignored;
    if (!done_) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  const std::string& to() const { return to_; }
  void Publish() {
    fs::permissions(path_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                               fs::perms::others_read | fs::perms::others_exec);
    files_.SyncFolder(path_);
    files_.Rename(path_, to_, /*overwrite=*/false);
    files_.SyncFolder(FolderOf(to_));
    done_ = true;
  }

 private:
  FileSystem& files_ = FileSystem::Real();
  std::string to_, path_;
  bool done_ = false;
};

std::string Quoted(const std::string& text) { return nlohmann::json(text).dump(); }
// With a point or an exponent, as TOML tells floats from integers.
std::string Real(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string ModelToml(const GptConfig& c) {
  std::string toml = fmt::format(
      "[model]\nfamily = \"{}\"\nlayers = {}\nhidden = {}\nheads = {}\nffn = {}\nvocabulary = {}\ncontext = {}\n"
      "tied = {}\nnorm_eps = {}\ninit_std = {}\n",
      c.family, c.layers, c.hidden, c.heads, c.ffn, c.vocabulary, c.context, c.tied, Real(c.norm_eps),
      Real(c.init_std));
  if (c.family == "gpt2") return toml;
  toml += fmt::format("kv_heads = {}\nrope_base = {}\n", c.kv_heads, Real(c.rope_base));
  if (c.rope_scaling == "none") return toml;
  toml += fmt::format("rope_scaling = \"{}\"\nrope_factor = {}\n", c.rope_scaling, Real(c.rope_factor));
  if (c.rope_scaling == "llama3")
    toml += fmt::format("rope_low_frequency = {}\nrope_high_frequency = {}\nrope_original_context = {}\n",
                        Real(c.rope_low_frequency), Real(c.rope_high_frequency), c.rope_original_context);
  return toml;
}

// The tokenizer beside the weights; none, with the reason, when there is none that can be used.
std::shared_ptr<const tokenizer::Tokenizer> TokenizerBeside(const ConvertCommandOptions& options, int64_t vocabulary,
                                                            std::string& note) {
  std::shared_ptr<const tokenizer::Tokenizer> loaded;
  if (!options.tokenizer.empty()) {
    loaded = tokenizer::LoadTokenizer(options.tokenizer);
    if (loaded->vocabulary() > vocabulary)
      throw UserError("--tokenizer: '{}' has {} tokens and the model {}", options.tokenizer, loaded->vocabulary(),
                      vocabulary);
    return loaded;
  }
  bool any = false;
  for (const char* name : {"tokenizer.json", "vocab.json", "tokenizer.model"})
    any = any || fs::exists(options.from + "/" + name);
  if (!any) {
    note = "there is no tokenizer in the folder";
    return nullptr;
  }
  try {
    loaded = tokenizer::LoadTokenizer(options.from);
  } catch (const UserError& error) {
    note = error.what();
    return nullptr;
  }
  if (loaded->vocabulary() <= vocabulary) return loaded;
  note = fmt::format("the tokenizer has {} tokens and the model {}", loaded->vocabulary(), vocabulary);
  return nullptr;
}

int Import(const ConvertCommandOptions& options, std::ostream& out) {
  if (!options.dtype.empty() || !options.max_shard.empty())
    throw UserError(
        "checkpoint convert: --dtype and --max-shard are for writing Hugging Face folders; checkpoints of "
        "training are fp32, however many ranks write them");
  const huggingface::ModelFolder from(options.from);
  PendingFolder pending(options.to);
  const GptConfig& config = from.config().model;
  // So that config.toml can be used from any folder, and copied.
  const std::string place = std::filesystem::absolute(pending.to()).lexically_normal().string();
  std::string note;
  const auto tokenizer = TokenizerBeside(options, config.vocabulary, note);
  std::string toml = ModelToml(config);
  toml += fmt::format("\n[data]\nsequence = {}\n", std::min<int64_t>(config.context, 1024));
  if (tokenizer != nullptr)
    toml +=
        fmt::format("tokenizer = {}\n", Quoted(tokenizer->files().empty() ? "bytes" : place + "/" + kTokenizerFolder));

  LoadedSettings settings;
  settings.config.LoadText(toml, "converted from " + options.from);
  settings.config.Finish();
  checkpoint::TrainState state;
  state.model_fingerprint = ModelFingerprint(from.spec());
  state.config = settings.config.ResolvedToml();
  state.extra[kTokenizerFingerprint] = tokenizer != nullptr ? tokenizer->Fingerprint() : kUnknownTokenizer;
  for (const auto& [key, ids] : from.config().special_ids)
    state.extra[kFromHuggingFace + key] = huggingface::FormatIds(ids);
  checkpoint::SaveCheckpoint(pending.path(), state, from.Parameters(), {});
  if (tokenizer != nullptr) WriteTokenizer(pending.path(), *tokenizer);
  WriteFileAtomically(
      pending.path() + "/config.toml",
      "# Trains on from these weights, with a fresh optimizer. Say on what: data.source, data.path, steps "
      "and learning rate\n# with --set, or here in a copy.\n" +
          toml +
          fmt::format("\n[checkpoint]\nweights = {}\n\n[run]\ndir = {}\n", Quoted(place),
                      Quoted("runs/" + fs::path(place).filename().string())));
  pending.Publish();
  out << fmt::format("{}: {} with {} parameters from {} file{}, fp32\n", pending.to(), config.family,
                     FormatCount(from.spec().parameter_count()), from.weights().num_files(),
                     from.weights().num_files() == 1 ? "" : "s");
  for (const std::string& n : from.config().notes) out << "note: " << n << "\n";
  if (tokenizer == nullptr)
    out << fmt::format(
        "note: no tokenizer was taken: {}; generate, eval and training take one with --tokenizer and data.tokenizer\n",
        note);
  out << fmt::format(
      "train on:  penstock train {}/config.toml --set data.source=text data.path=FILE\nuse:       penstock generate {} "
      "...\n",
      pending.to(), pending.to());
  return 0;
}

at::ScalarType ParseDtype(const std::string& text) {
  if (text.empty() || text == "fp32") return at::kFloat;
  if (text == "bf16") return at::kBFloat16;
  if (text == "fp16") return at::kHalf;
  if (text == "fp64") return at::kDouble;
  throw UserError("--dtype {}: fp32, bf16, fp16 or fp64", text);
}

// What AutoTokenizer needs beside the tokenizer's own files.
std::string TokenizerConfigJson(const tokenizer::Tokenizer& tokenizer, int64_t context) {
  const auto files = tokenizer.files();
  std::string kind = "PreTrainedTokenizerFast";
  for (const tokenizer::TokenizerFile& file : files) {
    if (file.name == "vocab.json") kind = "GPT2Tokenizer";
    if (file.name == "tokenizer.model") kind = "LlamaTokenizer";
  }
  nlohmann::ordered_json json = {{"tokenizer_class", kind}, {"model_max_length", context}};
  const auto say = [&](const char* key, int32_t id) {
    // An id that was added for it has no text.
    if (const std::string text = tokenizer.TokenText(id); !text.empty()) json[key] = text;
  };
  if (kind != "LlamaTokenizer") {
    say("eos_token", tokenizer.end_of_document());
    if (const auto bos = tokenizer.beginning_of_text()) say("bos_token", *bos);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int Export(const ConvertCommandOptions& options, std::ostream& out) {
  huggingface::ExportOptions how;
  how.dtype = ParseDtype(options.dtype);
  if (!options.max_shard.empty()) how.max_shard_bytes = ParseBytes(options.max_shard);
  if (how.max_shard_bytes < 1) throw UserError("--max-shard {}: must be above 0", options.max_shard);
  const auto opened =
      OpenModel({.from = options.from, .tokenizer = options.tokenizer, .weights = false, .text = false, .threads = 1});
  if (opened->spec.family != "gpt2" && opened->spec.family != "llama")
    throw UserError("'{}' is a {}; gpt2 and llama can be written for Hugging Face", options.from, opened->spec.family);
  PendingFolder pending(options.to);
  const bool own_tokenizer = opened->tokenizer != nullptr && !opened->tokenizer->files().empty();
  if (own_tokenizer) {
    how.config.special_ids["eos_token_id"] = {opened->tokenizer->end_of_document()};
    if (const auto first = opened->tokenizer->beginning_of_text()) how.config.special_ids["bos_token_id"] = {*first};
  }
  // What came with the weights goes with them.
  for (const char* key : huggingface::kSpecialIds)
    if (const auto& extra = opened->from->state().extra; extra.contains(kFromHuggingFace + std::string(key)))
      how.config.special_ids[key] = huggingface::ParseIds(extra.at(kFromHuggingFace + std::string(key)),
                                                          fmt::format("'{}': {}", opened->checkpoint, key));
  const auto fetch = [&](int p) {
    const model::ParameterSpec& parameter = opened->spec.parameters[p];
    return opened->from->ReadModel({parameter.name, nn::WideType(opened->precision), parameter.shape});
  };
  const auto written = huggingface::WriteModelFolder(pending.path(), opened->spec, fetch, how);
  if (own_tokenizer) {
    for (const tokenizer::TokenizerFile& file : opened->tokenizer->files())
      WriteFileAtomically(pending.path() + "/" + file.name, file.content);
    // One that came with its settings goes with them.
    if (const std::string settings = pending.path() + "/tokenizer_config.json"; !fs::exists(settings))
      WriteFileAtomically(settings, TokenizerConfigJson(*opened->tokenizer, opened->spec.context));
  }
  pending.Publish();
  out << fmt::format("{}: {} with {} parameters of step {}, {}, in {}\n", pending.to(), opened->spec.family,
                     FormatCount(opened->spec.parameter_count()), opened->step,
                     options.dtype.empty() ? "fp32" : options.dtype, fmt::join(written, ", "));
  if (opened->tokenizer == nullptr)
    out << "note: the weights came without a tokenizer, and go without one\n";
  else if (!own_tokenizer)
    out << "note: the model reads bytes; there are no tokenizer files to write\n";
  return 0;
}

}  // namespace

int RunConvertCheckpoint(const ConvertCommandOptions& options, std::ostream& out) {
  if (!fs::exists(options.from)) throw UserError("'{}' is not there", options.from);
  if (!fs::is_directory(options.from))
    throw UserError("'{}' is a file: give the folder with {} and the weights, or a checkpoint", options.from,
                    huggingface::kConfigFile);
  return fs::exists(options.from + "/" + huggingface::kConfigFile) ? Import(options, out) : Export(options, out);
}

}  // namespace penstock::session
