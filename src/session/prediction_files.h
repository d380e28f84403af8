// src/session/prediction_files.h
//
// What of a prediction is kept in a directory (report/run_files.h).
#pragma once

#include <string>

#include "session/prediction.h"

namespace penstock::session {

// UserError when `directory` (of an option --out; empty: none) is there already: nothing is overwritten.
void RequireNewDirectory(const std::string& directory);

// Creates `directory` and writes everything into it: configuration, schedule, timeline, trace, drawing, report.html.
// `measured`: what happened of it, when something did; on the page beside the prediction.
void WritePrediction(const std::string& directory, const LoadedSettings& settings, const Plan& plan,
                     const Prediction& prediction, const std::string& title,
                     const schedule::Timeline* measured = nullptr);

}  // namespace penstock::session
