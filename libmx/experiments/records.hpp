// SPDX-License-Identifier: Apache-2.0
// A study as a document: what --json writes (schema mx.study/1), and what it comes to in sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/experiments/findings.hpp"
#include "libmx/report/command_line.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/record.hpp"

namespace mx::experiments {

/// Members of the head behind `schema` and `tool`: what was trained, and the command line that does
/// it again. `budget` in seconds where sizes follow from one.
report::record head_of(const study_plan& plan, std::optional<double> budget,
                       const std::string& command, const findings& f);
/// A row per finding.
std::vector<report::record> results_of(const study_plan& plan, const findings& f);
/// Correlations, pairs and agreement.
report::record tail_of(const findings& f);
/// The schema mx.study/1.
report::document_schema study_schema();
/// The verdict: what was found, what was not, and what the size does not allow to say.
std::vector<std::string> sentences_of(const study_plan& plan, const findings& f);

/// Options of mx study that state all of the request.
std::vector<report::given_option> options_of(const lab::run_request& r,
                                             const std::vector<std::uint64_t>& seeds);

}  // namespace mx::experiments
