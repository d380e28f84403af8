// src/session/report_command.h
//
// `penstock report RUN_DIR`: what a run did (report/run_report.h), as text or JSON.
#pragma once

#include <iosfwd>
#include <string>

namespace penstock::session {

struct ReportOptions {
  std::string directory;
  bool json = false;
};
// Exit code. UserError when the directory is no run.
int RunReportCommand(const ReportOptions& options, std::ostream& out);

}  // namespace penstock::session
