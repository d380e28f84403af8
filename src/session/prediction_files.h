// src/session/prediction_files.h
//
// What of a prediction is kept in a directory (report/run_files.h).
#pragma once

#include <string>

#include "session/prediction.h"

namespace penstock::session {

// Creates `directory` and writes everything into it: configuration, schedule, timeline, trace, drawing, report.html.
void WritePrediction(const std::string& directory, const LoadedSettings& settings, const Plan& plan,
                     const Prediction& prediction);

}  // namespace penstock::session
