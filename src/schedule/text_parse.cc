// Reads the text form (docs/schedule_format.md); the parser is in schedule/text/.
#include "schedule/text.h"
#include "schedule/text/parser.h"

namespace penstock::schedule {

Schedule ParseSchedule(std::string_view text, std::string_view source) { return text::Parser(text, source).Run(); }

}  // namespace penstock::schedule
