#include "tokenizer/files/parse_steps.h"

#include <map>

#include "base/nearest.h"

namespace penstock::tokenizer {
namespace {

[[noreturn]] void Unsupported(const std::string& where, const std::string& type,
                              const std::vector<std::string>& known) {
  throw UserError("{} of type {} is not supported{}", where, type, DidYouMean(type, known));
}

// {"String": "x"} or {"Regex": "x"}.
struct Pattern {
  std::string text;
  bool regex = false;
};
Pattern ParsePattern(const Json& step, const std::string& where) {
  const Json& pattern = Member(step, "pattern");
  if (pattern.is_object() && pattern.contains("String")) return {Get<std::string>(pattern, "String", where), false};
  if (pattern.is_object() && pattern.contains("Regex")) return {Get<std::string>(pattern, "Regex", where), true};
  throw UserError("{}: 'pattern' is neither a String nor a Regex", where);
}

std::unique_ptr<Regex> MakeRegex(const std::string& expression, const std::string& where) {
  try {
    return std::make_unique<Regex>(expression);
  } catch (const UserError& error) {
    throw UserError("{}: {}", where, error.what());
  }
}

SplitBehavior ParseBehavior(const std::string& name, const std::string& where) {
  static const std::map<std::string, SplitBehavior> kBehaviors = {
      {"Removed", SplitBehavior::kRemoved},
      {"Isolated", SplitBehavior::kIsolated},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const auto found = kBehaviors.find(name);
  if (found == kBehaviors.end()) throw UserError("{}: there is no behavior '{}'", where, name);
  return found->second;
}

const Json& Steps(const Json& step, const char* key, const std::string& where) {
  const Json& steps = Member(step, key);
  if (!steps.is_array()) throw UserError("{}: '{}' is no list", where, key);
  return steps;
}

std::string Item(const std::string& where, size_t i) { return fmt::format("{}[{}]", where, i); }

// Of a Metaspace in its old and new spelling.
PrependScheme ParseScheme(const Json& step, const std::string& where) {
  const auto scheme = GetOr<std::string>(step, "prepend_scheme", "", where);
  if (scheme == "always") return PrependScheme::kAlways;
  if (scheme == "first") return PrependScheme::kFirst;
  if (scheme == "never") return PrependScheme::kNever;
  if (!scheme.empty()) throw UserError("{}: there is no prepend_scheme '{}'", where, scheme);
  return GetOr<bool>(step, "add_prefix_space", true, where) ? PrependScheme::kAlways : PrependScheme::kNever;
}

std::string NotEmpty(std::string text, const char* what, const std::string& where) {
  if (text.empty()) throw UserError("{}: {} is empty", where, what);
  return text;
}

}  // namespace

ParsedNormalizer ParseNormalizer(const Json& step, const std::string& where) {
  ParsedNormalizer parsed;
  if (step.is_null()) return parsed;
  const std::string type = TypeOf(step, where);
  parsed.keeps_bytes = false;
  if (type == "NFC") {
    parsed.normalizer = MakeUnicodeNormalizer(UnicodeForm::kNfc);
  } else if (type == "NFD") {
    parsed.normalizer = MakeUnicodeNormalizer(UnicodeForm::kNfd);
  } else if (type == "NFKC") {
    parsed.normalizer = MakeUnicodeNormalizer(UnicodeForm::kNfkc);
  } else if (type == "NFKD") {
    parsed.normalizer = MakeUnicodeNormalizer(UnicodeForm::kNfkd);
  } else if (type == "Lowercase") {
    parsed.normalizer = MakeLowercase();
  } else if (type == "StripAccents") {
    parsed.normalizer = MakeStripAccents();
  } else if (type == "Strip") {
    parsed.normalizer =
        MakeStrip(GetOr<bool>(step, "strip_left", true, where), GetOr<bool>(step, "strip_right", true, where));
    parsed.cuts_at_lines = false;
  } else if (type == "Prepend") {
    parsed.normalizer = MakePrepend(Get<std::string>(step, "prepend", where));
    parsed.cuts_at_lines = false;
  } else if (type == "Replace") {
    const Pattern pattern = ParsePattern(step, where);
    NotEmpty(pattern.text, "the pattern", where);
    const auto content = Get<std::string>(step, "content", where);
    parsed.normalizer =
        pattern.regex ? MakeReplaceRegex(MakeRegex(pattern.text, where), content) : MakeReplace(pattern.text, content);
    parsed.cuts_at_lines = false;
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> steps;
    const Json& list = Steps(step, "normalizers", where);
    parsed.keeps_bytes = true;
    for (size_t i = 0; i < list.size(); ++i) {
      ParsedNormalizer one = ParseNormalizer(list[i], Item(where, i));
      parsed.keeps_bytes = parsed.keeps_bytes && one.keeps_bytes;
      parsed.cuts_at_lines = parsed.cuts_at_lines && one.cuts_at_lines;
      if (one.normalizer != nullptr) steps.push_back(std::move(one.normalizer));
    }
    if (!steps.empty()) parsed.normalizer = MakeSequence(std::move(steps));
  } else {
    Unsupported(where, type,
                {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Prepend", "Replace", "Sequence"});
  }
  return parsed;
}

ParsedPreTokenizer ParsePreTokenizer(const Json& step, const std::string& where) {
  ParsedPreTokenizer parsed;
  if (step.is_null()) return parsed;
  const std::string type = TypeOf(step, where);
  if (type == "ByteLevel") {
    parsed.byte_level = true;
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    if (GetOr<bool>(step, "add_prefix_space", true, where)) {
      steps.push_back(MakePrefixSpace());
      parsed.keeps_bytes = false;
    }
    if (GetOr<bool>(step, "use_regex", true, where)) {
      steps.push_back(MakeScan(ScanPattern::kGpt2));
      parsed.cuts_at_lines = parsed.keeps_bytes;
    }
    if (!steps.empty()) parsed.pre_tokenizer = MakeSequence(std::move(steps));
  } else if (type == "Split") {
    const Pattern pattern = ParsePattern(step, where);
    NotEmpty(pattern.text, "the pattern", where);
    const SplitBehavior behavior = ParseBehavior(Get<std::string>(step, "behavior", where), where);
    const bool invert = GetOr<bool>(step, "invert", false, where);
    parsed.keeps_bytes = behavior != SplitBehavior::kRemoved;
    const auto scan = pattern.regex ? FindScanPattern(pattern.text) : std::nullopt;
    // The known patterns leave no gaps: isolated, or inverted with what did not match removed, gives their matches.
    if (scan && behavior == SplitBehavior::kIsolated) {
      parsed.pre_tokenizer = MakeScan(*scan);
      parsed.cuts_at_lines = true;
    } else if (scan && behavior == SplitBehavior::kRemoved && invert) {
      parsed.pre_tokenizer = MakeScan(*scan);
      parsed.cuts_at_lines = parsed.keeps_bytes = true;
    } else {
      parsed.pre_tokenizer = pattern.regex ? MakeSplit(MakeRegex(pattern.text, where), behavior, invert)
                                           : MakeSplit(pattern.text, behavior, invert);
    }
  } else if (type == "Digits") {
    parsed.pre_tokenizer = MakeDigits(GetOr<bool>(step, "individual_digits", false, where));
  } else if (type == "Punctuation") {
    const SplitBehavior behavior = ParseBehavior(GetOr<std::string>(step, "behavior", "Isolated", where), where);
    parsed.keeps_bytes = behavior != SplitBehavior::kRemoved;
    parsed.pre_tokenizer = MakePunctuation(behavior);
  } else if (type == "Whitespace") {
    // Runs of letters, and runs of what is neither that nor white space; \w as Unicode's TR18 has it.
    const std::string word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control})";
    parsed.pre_tokenizer =
        MakeSplit(std::make_unique<Regex>("[" + word + "]+|[^" + word + R"(\s]+)"), SplitBehavior::kRemoved, true);
    parsed.keeps_bytes = false;
  } else if (type == "WhitespaceSplit") {
    parsed.pre_tokenizer = MakeWhitespaceSplit();
    parsed.keeps_bytes = false;
  } else if (type == "Metaspace") {
    parsed.pre_tokenizer =
        MakeMetaspace(NotEmpty(GetOr<std::string>(step, "replacement", "\xE2\x96\x81", where), "'replacement'", where),
                      ParseScheme(step, where), GetOr<bool>(step, "split", true, where));
    parsed.keeps_bytes = false;
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    const Json& list = Steps(step, "pretokenizers", where);
    bool any_cuts = false, all_regular = true;
    for (size_t i = 0; i < list.size(); ++i) {
      ParsedPreTokenizer one = ParsePreTokenizer(list[i], Item(where, i));
      // Bytes are spelt at the end: what came after would see the spelling instead of the text.
      if (parsed.byte_level) throw UserError("{}: a step after ByteLevel is not supported", where);
      parsed.byte_level = one.byte_level;
      parsed.keeps_bytes = parsed.keeps_bytes && one.keeps_bytes;
      // A step that looks at a piece alone keeps a cut that an earlier step makes anyway.
      any_cuts = any_cuts || one.cuts_at_lines;
      const std::string step_type = TypeOf(list[i], Item(where, i));
      all_regular = all_regular && one.keeps_bytes && (any_cuts || step_type == "Digits");
      if (one.pre_tokenizer != nullptr) steps.push_back(std::move(one.pre_tokenizer));
    }
    parsed.cuts_at_lines = any_cuts && all_regular;
    if (!steps.empty()) parsed.pre_tokenizer = MakeSequence(std::move(steps));
  } else {
    Unsupported(
        where, type,
        {"ByteLevel", "Split", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit", "Metaspace", "Sequence"});
  }
  return parsed;
}

ParsedDecoder ParseDecoder(const Json& step, const std::string& where) {
  ParsedDecoder parsed;
  if (step.is_null()) return parsed;
  const std::string type = TypeOf(step, where);
  if (type == "ByteLevel") {
    parsed.byte_level = true;
  } else if (type == "Replace") {
    const Pattern pattern = ParsePattern(step, where);
    if (pattern.regex) throw UserError("{}: replacing a Regex is not supported", where);
    parsed.decoder = MakeReplaceDecoder(pattern.text, Get<std::string>(step, "content", where));
  } else if (type == "ByteFallback") {
    parsed.decoder = MakeByteFallbackDecoder();
  } else if (type == "Fuse") {
    parsed.decoder = MakeFuseDecoder();
  } else if (type == "Strip") {
    parsed.decoder = MakeStripDecoder(NotEmpty(Get<std::string>(step, "content", where), "'content'", where),
                                      GetOr<int>(step, "start", 0, where), GetOr<int>(step, "stop", 0, where));
  } else if (type == "Metaspace") {
    parsed.decoder = MakeMetaspaceDecoder(GetOr<std::string>(step, "replacement", "\xE2\x96\x81", where),
                                          ParseScheme(step, where) == PrependScheme::kNever);
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> steps;
    const Json& list = Steps(step, "decoders", where);
    for (size_t i = 0; i < list.size(); ++i) {
      ParsedDecoder one = ParseDecoder(list[i], Item(where, i));
      if (one.byte_level && list.size() > 1)
        throw UserError("{}: ByteLevel together with other steps is not supported", where);
      parsed.byte_level = one.byte_level;
      if (one.decoder != nullptr) steps.push_back(std::move(one.decoder));
    }
    if (!steps.empty()) parsed.decoder = MakeSequence(std::move(steps));
  } else {
    Unsupported(where, type, {"ByteLevel", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace", "Sequence"});
  }
  return parsed;
}

}  // namespace penstock::tokenizer
