#include "base/error.h"
#include "tokenizer/tokenizer.h"

namespace penstock::tokenizer {

std::shared_ptr<const Tokenizer> LoadTokenizer(const std::string& name) {
  if (name == "bytes") return std::make_shared<ByteTokenizer>();
  throw UserError("there is no tokenizer '{}'; known: bytes", name);
}

}  // namespace penstock::tokenizer
