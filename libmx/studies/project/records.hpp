// SPDX-License-Identifier: Apache-2.0
// The records and sentences that mx study speedups writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/report/declared.hpp"
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

/// Model, assumptions and work by class.
report::record head_of(const study& s);
report::record configuration_record(const study& s, const configuration& c);
/// Fitted parameters, and the change of each speed-up if a parameter grows by 1 %.
report::record tail_of(const study& s);
/// The schema mx.project/1.
report::document_schema project_schema();

/// Sentences about the projection: the source of the shares, and speed-ups that no rates explain.
std::vector<std::string> projection_summary(const study& s);

}  // namespace mx::project
