// SPDX-License-Identifier: Apache-2.0
// Several copies of mx that mpirun starts share one run: each takes the next part until there is
// none, and the first merges the parts and writes what one run writes.
#pragma once

#include <string>

namespace mx::app {

/// "" in a build without MPI, else the version of the library.
std::string mpi_version();

/// Whether mpirun started this program as one of several copies.
bool in_ranks();

/// Runs the command line in all copies; returns the exit code of this one. Where one fails, its
/// message is the message of the job, all copies end, and nothing is left behind.
int run_in_ranks(int argc, char** argv);

}  // namespace mx::app
