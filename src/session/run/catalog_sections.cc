// Sections of `penstock list` that need libtorch.
#include "optim/optimizer.h"
#include "session/catalog.h"

namespace penstock::session {
namespace {

const RegisterCatalogSection kOptimizers{{"optimizers", [] { return EntriesOf<optim::Optimizer>(); }}};

}  // namespace
}  // namespace penstock::session
