// SPDX-License-Identifier: Apache-2.0
// The records and sentences that mx study speedups writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/report/record.hpp"
#include "libmx/studies/project/measured.hpp"
#include "libmx/studies/project/solve.hpp"

namespace mx::project {

/// A projection and its request.
struct study {
    named_shape model;
    const profile* by = nullptr;
    assumptions with;
    std::vector<configuration> configurations;
    std::vector<target_row> targets;  ///< speed-ups to compare with
    std::vector<solved_parameter> solved;
    std::optional<measured_rates> measured;
    double tokens = default_sequence;  ///< of a step, where times are measured
};

report::record model_record(const study& s);
report::record assumptions_record(const study& s);
/// One record per class of work: FLOP and share of the total.
std::vector<report::record> work_records(const study& s);
report::record configuration_record(const study& s, const configuration& c);
std::vector<report::record> parameter_records(const study& s);
/// The change of each speed-up if a parameter grows by 1 %.
std::vector<report::record> sensitivity_records(const study& s);

/// Sentences about the projection: the source of the shares, and speed-ups that no rates explain.
std::vector<std::string> projection_summary(const study& s);

}  // namespace mx::project
