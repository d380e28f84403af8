#include "data/tokenize/piece_work.h"

#include "base/log.h"

namespace penstock::data {

void LeftOutWarnings::Warn(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) {
    if (++named_ <= 10) log::Warning("{}a line is left out: {}", prefix_, fault);
    if (named_ == 10) log::Warning("{}further lines are counted and not named", prefix_);
  }
}

}  // namespace penstock::data
