#include "base/this_rank.h"

namespace penstock {
namespace {

thread_local int this_rank = -1;

}  // namespace

int ThisRank() { return this_rank; }
void SetThisRank(int rank) { this_rank = rank; }

}  // namespace penstock
