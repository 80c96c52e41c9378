// SPDX-License-Identifier: Apache-2.0
// Several mx processes started by mpirun share one run: each takes the next part until none is
// left; the first merges the parts and writes the same output as a single run.
#pragma once

#include <string>

namespace mx::app {

/// The version of the MPI library; "" in a build without MPI.
std::string mpi_version();

/// Whether mpirun started this program as one of several processes.
bool in_ranks();

/// Runs the command line in all processes; returns the exit code of this one. If one fails, its
/// message is the message of the job, all processes end, and temporary files are removed.
int run_in_ranks(int argc, char** argv);

}  // namespace mx::app
