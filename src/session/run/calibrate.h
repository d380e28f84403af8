// src/session/run/calibrate.h
//
// Measures what this machine does with one thread per rank and writes it as the cluster `this-machine`
// (cluster/read.h): GEMMs by size in every precision, attention's batched products, memory traffic by size, the time of
// an operation that does nothing, the hand-over between two rank threads, and what a transformer block takes beside its
// products.
#pragma once

#include <iosfwd>

#include "cluster/cluster.h"

namespace penstock::session {

// Takes about ten seconds. `progress` gets a line per part.
cluster::Cluster Calibrate(std::ostream& progress);

// Calibrates and writes cluster::ThisMachineFile(), replacing what an earlier calibration wrote.
void CalibrateThisMachine(std::ostream& progress);

}  // namespace penstock::session
