#include "model/family.h"
#include "session/catalog.h"

namespace penstock::session {
namespace {

const RegisterCatalogSection kModels{{"models", [] { return EntriesOf<model::ModelFamily>(); }}};

}  // namespace
}  // namespace penstock::session
