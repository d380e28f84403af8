#include "session/report_command.h"

#include <ostream>

#include "report/run_report.h"

namespace penstock::session {

int RunReportCommand(const ReportOptions& options, std::ostream& out) {
  const report::RunReport run = report::ReadRun(options.directory);
  out << (options.json ? run.ToJson() : run.ToText());
  return 0;
}

}  // namespace penstock::session
