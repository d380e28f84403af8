// Folders written and read again give the same bits; folders that do not fit are refused with everything that is wrong
// in one message.
#include "huggingface/model_folder.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/temporary_directory.h"
#include "huggingface/small_models.h"

namespace penstock::huggingface {
namespace {

using checkpoint::TemporaryDirectory;
using Json = nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;  // by their name

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string Refusal(const std::string& folder) {
  try {
    const ModelFolder opened(folder);
    const checkpoint::TensorSource source = opened.Parameters();
    for (size_t i = 0; i < source.specs.size(); ++i) source.fetch(static_cast<int>(i));
    return "accepted";
  } catch (const UserError& error) {
    return error.what();
  }
}

Tensors ReadAll(const std::string& folder) {
  const WeightFiles weights(folder);
  Tensors tensors;
  for (const auto& [name, file] : weights.tensors()) tensors[name] = weights.Read(name);
  return tensors;
}

void WriteSingle(const std::string& folder, const Tensors& tensors) {
  checkpoint::NamedTensors named(tensors.begin(), tensors.end());
  checkpoint::WriteSafetensors(folder + "/" + kWeightsFile, checkpoint::FromMemory(named), {{"format", "pt"}});
}

TEST(ModelFolder, RoundTripOfEveryTypeInOneFileAndInShards) {
  int folders = 0, sharded = 0;
  for (const model::GptConfig& config : {SmallGpt2(true), SmallGpt2(false), SmallLlama(true), SmallLlama(false),
                                         SmallLlama(false, "linear"), SmallLlama(true, "llama3")})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble})
      for (const int64_t most : {int64_t{5} << 30, int64_t{700}, int64_t{1}}) {
        if (most == 1 && dtype != at::kFloat) continue;  // a file for each tensor: many to sync
        SCOPED_TRACE(fmt::format("{} {} tied {} {} {}", config.family, config.rope_scaling, config.tied,
                                 c10::toString(dtype), most));
        const TemporaryDirectory folder;
        const model::ModelSpec spec = model::BuildGptSpec(config);
        const std::vector<at::Tensor> weights = RandomWeights(spec, dtype);
        std::vector<int> fetched;
        const std::vector<std::string> files = WriteModelFolder(folder.path(), spec,
                                                                [&](int p) {
                                                                  fetched.push_back(p);
                                                                  return weights[p];
                                                                },
                                                                {.dtype = dtype, .max_shard_bytes = most});
        // Each once, in order.
        ASSERT_EQ(fetched.size(), weights.size());
        EXPECT_TRUE(std::is_sorted(fetched.begin(), fetched.end()));
        std::vector<std::string> there = FileSystem::Real().List(folder.path()), said = files;
        std::sort(said.begin(), said.end());
        EXPECT_EQ(there, said);
        const bool one = most > 1'000'000;
        EXPECT_EQ(std::count(files.begin(), files.end(), kWeightsFile), one ? 1 : 0);
        EXPECT_EQ(std::count(files.begin(), files.end(), kWeightsIndex), one ? 0 : 1);

        const ModelFolder opened(folder.path());
        EXPECT_EQ(opened.config().model.family, config.family);
        EXPECT_EQ(opened.config().model.tied, config.tied);
        EXPECT_EQ(opened.config().model.rope_scaling, config.rope_scaling);
        EXPECT_EQ(opened.weights().num_files(), files.size() - (one ? 1 : 2));
        if (most == 1) {
          EXPECT_EQ(opened.weights().num_files(), weights.size());
        }
        // As they lie there: the very bits.
        const std::vector<MappedTensor> mapped = MapParameters(spec);
        for (size_t p = 0; p < weights.size(); ++p) {
          const at::Tensor theirs = opened.weights().Read(mapped[p].theirs);
          EXPECT_TRUE(SameBits(mapped[p].transposed ? theirs.t() : theirs, weights[p])) << mapped[p].theirs;
        }
        // As parameters: fp32, rounded where it was wider.
        const checkpoint::TensorSource source = opened.Parameters();
        ASSERT_EQ(source.specs.size(), spec.parameters.size());
        for (size_t p = 0; p < weights.size(); ++p) {
          EXPECT_EQ(source.specs[p].name, spec.parameters[p].name);
          const at::Tensor read = source.fetch(static_cast<int>(p));
          EXPECT_TRUE(SameBits(read, weights[p].to(at::kFloat))) << source.specs[p].name;
          if (dtype != at::kDouble) {
            EXPECT_TRUE(SameBits(read.to(dtype), weights[p])) << source.specs[p].name;
          }
        }
        if (!one) {
          const Json index = Json::parse(ReadFile(folder / kWeightsIndex));
          int64_t bytes = 0;
          for (const at::Tensor& w : weights) bytes += static_cast<int64_t>(w.nbytes());
          EXPECT_EQ(index["metadata"]["total_size"], bytes);
          EXPECT_EQ(index["weight_map"].size(), weights.size());
        }
        ++folders;
        sharded += !one;
      }
  EXPECT_EQ(folders, 54);
  EXPECT_EQ(sharded, 30);
}

// fp32 to a narrower type and back is one rounding.
TEST(ModelFolder, ExportRounds) {
  const TemporaryDirectory folder;
  const model::ModelSpec spec = model::BuildGptSpec(SmallLlama(false));
  const std::vector<at::Tensor> weights = RandomWeights(spec, at::kFloat);
  WriteModelFolder(folder.path(), spec, [&](int p) { return weights[p]; }, {.dtype = at::kBFloat16});
  const ModelFolder opened(folder.path());
  for (size_t p = 0; p < weights.size(); ++p)
    EXPECT_TRUE(SameBits(opened.Parameters().fetch(static_cast<int>(p)), weights[p].to(at::kBFloat16).to(at::kFloat)));
}

TEST(ModelFolder, ValuesBeyondTheTypeAreRefused) {
  const model::ModelSpec spec = model::BuildGptSpec(SmallGpt2(true));
  const double infinity = std::numeric_limits<double>::infinity();
  struct Row {
    at::ScalarType from, to;
    double value;
    const char* part;  // nullptr: it is written
  };
  const Row rows[] = {{at::kFloat, at::kHalf, 65520, "F16"},       {at::kFloat, at::kHalf, 65504, nullptr},
                      {at::kFloat, at::kBFloat16, 3.4e38, "BF16"}, {at::kFloat, at::kBFloat16, 3.3e38, nullptr},
                      {at::kDouble, at::kFloat, 1e39, "F32"},      {at::kDouble, at::kFloat, 3e38, nullptr},
                      {at::kFloat, at::kFloat, infinity, nullptr},  // it was there before
                      {at::kFloat, at::kHalf, infinity, nullptr}};
  for (const Row& row : rows) {
    const TemporaryDirectory folder;
    const auto write = [&] {
      WriteModelFolder(
          folder.path(), spec,
          [&](int p) { return at::full(spec.parameters[p].shape, row.value, at::TensorOptions().dtype(row.from)); },
          {.dtype = row.to});
    };
    if (row.part == nullptr) {
      EXPECT_NO_THROW(write()) << row.value;
      continue;
    }
    try {
      write();
      ADD_FAILURE() << row.value << " was written as " << row.part;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("which ") + row.part + " cannot hold"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("embed.token.weight"), std::string::npos) << error.what();
    }
  }
  const TemporaryDirectory folder;
  EXPECT_THROW(WriteModelFolder(folder.path(), spec, [&](int) { return at::Tensor(); }, {.dtype = at::kLong}),
               UserError);
}

TEST(ModelFolder, NamesWithoutHeadAndConstantsOfOldVersions) {
  for (const model::GptConfig& config : {SmallGpt2(true), SmallLlama(false)}) {
    const TemporaryDirectory folder;
    WriteSmall(folder.path(), config);
    const ModelFolder before(folder.path());
    Tensors renamed;
    for (const auto& [name, tensor] : ReadAll(folder.path())) renamed[std::string(WithoutHeadPrefix(name))] = tensor;
    renamed["h.0.attn.bias"] = at::zeros({1, 1, 6, 6}).to(at::kByte);
    renamed["layers.1.self_attn.rotary_emb.inv_freq"] = at::zeros({1});
    std::vector<at::Tensor> was;
    for (size_t p = 0; p < before.spec().parameters.size(); ++p)
      was.push_back(before.Parameters().fetch(static_cast<int>(p)));
    WriteSingle(folder.path(), renamed);
    const ModelFolder after(folder.path());
    for (size_t p = 0; p < was.size(); ++p)
      EXPECT_TRUE(SameBits(after.Parameters().fetch(static_cast<int>(p)), was[p])) << p;
  }
}

TEST(ModelFolder, ATiedHeadMayBeWrittenOut) {
  const TemporaryDirectory folder;
  WriteSmall(folder.path(), SmallLlama(true));
  Tensors tensors = ReadAll(folder.path());
  const at::Tensor embedding = tensors.at("model.embed_tokens.weight");
  tensors[kHeadName] = embedding.clone();
  WriteSingle(folder.path(), tensors);
  EXPECT_EQ(Refusal(folder.path()), "accepted");
  at::Tensor other = embedding.clone();
  other[3][2] += 1;
  for (const at::Tensor& head : {other, embedding.to(at::kDouble), embedding.t().contiguous(), at::zeros({2})}) {
    tensors[kHeadName] = head;
    WriteSingle(folder.path(), tensors);
    const std::string message = Refusal(folder.path());
    for (const char* const part : {"config.json", kHeadName, "model.embed_tokens.weight", "tie_word_embeddings"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(ModelFolder, OneErrorListsAllThatDoesNotFit) {
  for (const bool gpt2 : {true, false}) {
    const TemporaryDirectory folder;
    WriteSmall(folder.path(), gpt2 ? SmallGpt2(false) : SmallLlama(false));
    Tensors tensors = ReadAll(folder.path());
    std::vector<std::string> names;
    for (const auto& [name, unused] : tensors) names.push_back(name);
    tensors.erase(names[2]);
    tensors.erase(names[5]);
    tensors["surprise.weight"] = at::zeros({3});
    tensors["another"] = at::zeros({});
    tensors[names[3]] = at::zeros({5, 7});
    tensors[names[4]] = at::zeros(tensors[names[4]].sizes()).to(at::kLong);
    WriteSingle(folder.path(), tensors);
    const std::string message = Refusal(folder.path());
    EXPECT_NE(message.find(kConfigFile), std::string::npos) << message;
    for (const std::string& part :
         {std::string("2 missing:"), "\n    " + names[2] + "\n", "\n    " + names[5] + "\n",
          std::string("2 unexpected:\n    another\n    surprise.weight"), std::string("2 of another shape or type:"),
          names[3] + " is [5, 7], the model has [", names[4] + " is I64"})
      EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
    for (const size_t fine : {0, 1, 6, 7}) EXPECT_EQ(message.find(names[fine]), std::string::npos) << message;

    WriteSingle(folder.path(), {{"surprise.weight", at::zeros({3})}, {"b", at::zeros({3})}});
    const std::string all = Refusal(folder.path());
    EXPECT_NE(all.find(fmt::format("{} missing:", names.size())), std::string::npos) << all;
    EXPECT_NE(all.find(fmt::format("and {} more", names.size() - 12)), std::string::npos) << all;
    EXPECT_NE(all.find("2 unexpected:"), std::string::npos) << all;
  }
}

TEST(ModelFolder, ShardsThatAreNotWhatTheIndexSays) {
  const TemporaryDirectory folder;
  WriteSmall(folder.path(), SmallLlama(false), {.max_shard_bytes = 700});
  const Json index = Json::parse(ReadFile(folder / kWeightsIndex));
  const std::string first = index["weight_map"].begin().key();
  const auto refused = [&](const Json& changed, const std::vector<std::string>& parts) {
    Write(folder / kWeightsIndex, changed.dump());
    const std::string message = Refusal(folder.path());
    for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
    EXPECT_NE(message.find(folder.path()), std::string::npos) << message;
  };
  Json changed = index;
  changed["weight_map"].erase(first);
  changed["weight_map"]["ghost"] = index["weight_map"][first];
  refused(changed, {kWeightsIndex, "1 missing:\n    ghost", "1 unexpected:\n    " + first});
  const auto last = std::prev(index["weight_map"].end());
  changed = index;
  changed["weight_map"][first] = last.value();
  changed["weight_map"][last.key()] = index["weight_map"][first];
  refused(changed, {kWeightsIndex, "2 missing", "2 unexpected", first, last.key()});
  for (const Json& file : {Json("../outside.safetensors"), Json("/etc/passwd"), Json("a/b"), Json("a\\b"), Json(".."),
                           Json("."), Json(""), Json(std::string("a\0b", 3)), Json(7), Json(nullptr), Json::array()}) {
    changed = index;
    changed["weight_map"][first] = file;
    refused(changed, {kWeightsIndex, first, "no name of a file"});
  }
  for (const std::string& file : {std::string("gone.safetensors"), std::string(300, 'x'), std::string(5000, 'x')}) {
    changed = index;
    changed["weight_map"][first] = file;
    refused(changed, {kWeightsIndex, file, "not in the folder"});
  }
  changed = index;
  changed["weight_map"][first] = kConfigFile;
  refused(changed, {kConfigFile, "not a safetensors file"});
  refused(Json{{"weight_map", Json::object()}}, {kWeightsIndex, "empty"});
  refused(Json{{"weight_map", 3}}, {kWeightsIndex, "no object 'weight_map'"});
  refused(Json::object(), {kWeightsIndex, "no object 'weight_map'"});
  Write(folder / kWeightsIndex, index.dump());
  EXPECT_EQ(Refusal(folder.path()), "accepted");
}

TEST(ModelFolder, FilesOfAnotherKind) {
  namespace fs = std::filesystem;
  for (const bool sharded : {false, true}) {
    const TemporaryDirectory folder;
    for (const std::string& file :
         WriteSmall(folder.path(), SmallGpt2(true), {.max_shard_bytes = sharded ? 700 : 1 << 30})) {
      const std::string path = folder / file, kept = folder.path() + ".kept";
      fs::rename(path, kept);
      const auto refused = [&](const char* what) {
        const std::string message = Refusal(folder.path());
        EXPECT_NE(message.find(folder.path()), std::string::npos) << what << ": " << message;
        EXPECT_NE(message.find(file.substr(0, 5)), std::string::npos) << what << ": " << message;
        fs::remove(path);
      };
      refused("not there");
      fs::create_directory(path);
      refused("a folder");
      fs::create_symlink(folder.path(), path);
      refused("a link to a folder");
      fs::create_symlink(folder / "nothing", path);
      refused("a link to nothing");
      fs::create_symlink(path, path);
      refused("a link to itself");
      ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // nobody ever writes into it
      refused("a pipe");
      Write(path, "");
      refused("empty");
      fs::rename(kept, path);
    }
    EXPECT_EQ(Refusal(folder.path()), "accepted");
  }
  EXPECT_NE(Refusal("/nowhere/at/all").find(kConfigFile), std::string::npos);
}

TEST(ModelFolder, PicklesAreNotRead) {
  const TemporaryDirectory folder;
  Write(folder / kConfigFile, FormatConfigJson(SmallGpt2(true)));
  EXPECT_NE(Refusal(folder.path()).find(kWeightsIndex), std::string::npos);
  Write(folder / "pytorch_model.bin", "PK");
  EXPECT_NE(Refusal(folder.path()).find("pickles"), std::string::npos);
}

// Nothing is made for the parameters that a configuration asks for and the files do not have.
TEST(ModelFolder, HugeConfigurationsAreRefused) {
  const TemporaryDirectory folder;
  WriteSmall(folder.path(), SmallGpt2(false));
  const Json config = Json::parse(ReadFile(folder / kConfigFile));
  for (const auto& [changes, part] :
       {std::pair(R"({"n_layer": 65536})", "'n_layer' = 65536"), std::pair(R"({"n_layer": 1000000000000})", "n_layer"),
        std::pair(R"({"n_embd": 1048576, "n_inner": 4194304})", "of another shape"),
        std::pair(R"({"vocab_size": 67108864, "n_embd": 1048576})", "[67108864, 1048576]"),
        std::pair(R"({"n_layer": 3})", "12 missing"), std::pair(R"({"n_layer": 1})", "12 unexpected")}) {
    Json changed = config;
    changed.update(Json::parse(changes));
    Write(folder / kConfigFile, changed.dump());
    const std::string message = Refusal(folder.path());
    EXPECT_NE(message.find(part), std::string::npos) << changes << ": " << message;
    EXPECT_NE(message.find(kConfigFile), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace penstock::huggingface
