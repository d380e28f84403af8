#include "paths.h"

namespace penstock {

std::string SourceFolder() { return PENSTOCK_SOURCE_DIR; }

}  // namespace penstock
