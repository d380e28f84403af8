#include "comm/tag.h"

#include <fmt/format.h>

namespace penstock::comm {

std::string PlainTagName(const Tag& tag) { return fmt::format("{}/{}", tag.what, tag.which); }

}  // namespace penstock::comm
