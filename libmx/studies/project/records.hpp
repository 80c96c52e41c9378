// SPDX-License-Identifier: Apache-2.0
// What mx project writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/report/record.hpp"
#include "libmx/studies/project/measured.hpp"
#include "libmx/studies/project/solve.hpp"

namespace mx::project {

/// A projection as it was asked for.
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
/// A class of work each: FLOP, and its part of the FLOP.
std::vector<report::record> work_records(const study& s);
report::record configuration_record(const study& s, const configuration& c);
std::vector<report::record> parameter_records(const study& s);
/// How much each speed-up changes where a parameter grows by a hundredth of itself.
std::vector<report::record> sensitivity_records(const study& s);

/// What is to be said of it, a sentence each: what the shares stand on, and what no rates explain.
std::vector<std::string> project_words(const study& s);

}  // namespace mx::project
