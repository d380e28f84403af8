#include "tokenizer/bpe/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

namespace penstock::tokenizer {
namespace {

// PCRE2's \s has U+180E, which is no white space since Unicode 6.3: the property says it exactly, and is allowed inside
// classes too.
std::string WithExactSpaces(const std::string& expression) {
  std::string out;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '\\' || i + 1 == expression.size()) {
      out += expression[i];
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's')
      out += "\\p{White_Space}";
    else if (escaped == 'S')
      out += "\\P{White_Space}";
    else
      (out += '\\') += escaped;
  }
  return out;
}

std::string MessageOf(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

// One of each thread; holds one pair of offsets, so it serves any expression.
pcre2_match_data* MatchData() {
  struct Owner {
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
    ~Owner() { pcre2_match_data_free(data); }
  };
  static thread_local const Owner kOwner;
  return kOwner.data;
}

}  // namespace

struct Regex::Compiled {
  pcre2_code* code = nullptr;
  ~Compiled() { pcre2_code_free(code); }
};

Regex::Regex(const std::string& expression) : compiled_(std::make_unique<Compiled>()), expression_(expression) {
  const std::string exact = WithExactSpaces(expression);
  int error = 0;
  PCRE2_SIZE place = 0;
  compiled_->code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(exact.data()), exact.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &place, nullptr);
  if (compiled_->code == nullptr)
    throw UserError("the regular expression {} is not understood: {} (after {} bytes)", expression, MessageOf(error),
                    place);
  pcre2_jit_compile(compiled_->code, PCRE2_JIT_COMPLETE);  // without it, the interpreter is used
}

Regex::~Regex() = default;

std::optional<std::pair<size_t, size_t>> Regex::Find(std::string_view text, size_t from) const {
  pcre2_match_data* data = MatchData();
  const int found =
      pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, 0, data, nullptr);
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) throw UserError("matching the regular expression {} was given up: {}", expression_, MessageOf(found));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data);
  return std::pair<size_t, size_t>(ends[0], ends[1]);
}

}  // namespace penstock::tokenizer
