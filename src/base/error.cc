#include "base/error.h"

#include <cstring>

namespace penstock::internal {

void ThrowCheckFailed(const char* file, int line, const char* condition, const std::string& detail) {
  const char* slash = std::strrchr(file, '/');
  throw InternalError(fmt::format("internal error at {}:{}: {} does not hold{}{}", slash ? slash + 1 : file, line,
                                  condition, detail.empty() ? "" : ": ", detail));
}

}  // namespace penstock::internal
