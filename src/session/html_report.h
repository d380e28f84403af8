// src/session/html_report.h
//
// report.html of a directory of a run or a simulation, from what is in it (report/run_files.h): schedule, timelines,
// metrics, and plan.json with what the plan knew.
#pragma once

#include <string>

#include "session/prediction.h"

namespace penstock::session {

// plan.json: predicted peaks, the first step of this start, limits, facts and warnings.
std::string PlanJson(const Prediction& prediction, const Plan& plan, int64_t first_step);

// Reads the directory and writes report.html and, of both timelines together, trace.json.
void WriteReportFiles(const std::string& directory, const std::string& title);

}  // namespace penstock::session
