#include "tokenizer/bpe/decode.h"

#include "tokenizer/bpe/normalize.h"

namespace penstock::tokenizer {
namespace {

struct ReplaceDecoder : Decoder {
  ReplaceDecoder(std::string from, std::string to) : from(std::move(from)), to(std::move(to)) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = ReplaceAll(token, from, to);
  }
  std::string from, to;
};

struct ByteFallback : Decoder {
  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens)
      if (const int byte = ByteOfToken(token); byte >= 0) token.assign(1, static_cast<char>(byte));
  }
};

struct Fuse : Decoder {
  void Apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, all);
  }
};

struct StripDecoder : Decoder {
  StripDecoder(std::string content, int start, int stop) : content(std::move(content)), start(start), stop(stop) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (int i = 0; i < start && token.starts_with(content); ++i) token.erase(0, content.size());
      for (int i = 0; i < stop && token.ends_with(content); ++i) token.erase(token.size() - content.size());
    }
  }
  std::string content;
  int start, stop;
};

struct MetaspaceDecoder : Decoder {
  MetaspaceDecoder(std::string replacement, bool keep_first)
      : replacement(std::move(replacement)), keep_first(keep_first) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i == 0 && !keep_first) tokens[i] = ReplaceAll(tokens[i], replacement, "");
      tokens[i] = ReplaceAll(tokens[i], replacement, " ");
    }
  }
  std::string replacement;
  bool keep_first;
};

struct Sequence : Decoder {
  explicit Sequence(std::vector<std::unique_ptr<Decoder>> steps) : steps(std::move(steps)) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps) step->Apply(tokens);
  }
  std::vector<std::unique_ptr<Decoder>> steps;
};

}  // namespace

int ByteOfToken(const std::string& token) {
  if (token.size() != 6 || token.compare(0, 3, "<0x") != 0 || token[5] != '>') return -1;
  int value = 0;
  for (const char c : {token[3], token[4]}) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::unique_ptr<Decoder> MakeReplaceDecoder(std::string from, std::string to) {
  return std::make_unique<ReplaceDecoder>(std::move(from), std::move(to));
}
std::unique_ptr<Decoder> MakeByteFallbackDecoder() { return std::make_unique<ByteFallback>(); }
std::unique_ptr<Decoder> MakeFuseDecoder() { return std::make_unique<Fuse>(); }
std::unique_ptr<Decoder> MakeStripDecoder(std::string content, int start, int stop) {
  return std::make_unique<StripDecoder>(std::move(content), start, stop);
}
std::unique_ptr<Decoder> MakeMetaspaceDecoder(std::string replacement, bool keep_first) {
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), keep_first);
}
std::unique_ptr<Decoder> MakeSequence(std::vector<std::unique_ptr<Decoder>> steps) {
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace penstock::tokenizer
