// SPDX-License-Identifier: Apache-2.0
// A study: configurations of a training, each beside a baseline. THE LIST of studies.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mx::experiments {

/// Whose errors are measured beside the loss.
enum class operand : std::uint8_t { none, weights, activations, gradients };

/// What a configuration is measured by.
enum class yardstick : std::uint8_t {
    gap,    ///< its loss less the baseline's, on the last steps
    steps,  ///< the steps to a loss that the baseline has on the way, over the baseline's steps
};

struct configuration {
    std::string group;        ///< of configurations with the same baseline and subject
    std::string name;         ///< within the group
    std::string settings;     ///< of its precision, as lab::parse_settings takes them
    std::string baseline;     ///< settings of the run that it is compared with
    double from = 0;          ///< share of the steps that are the baseline's, before its own hold
    std::string source = {};  ///< the figure or table that asks
    std::optional<double> published = {};  ///< what the source has: a gap, or extra steps (share)
    std::string published_words = {};      ///< the same as the source says it, or what it says
    operand varied = operand::none;        ///< whose recipe it is that differs from the baseline
    std::string recipe = {};               ///< that recipe
    bool is_format = false;                ///< a format under its preset's rules
    std::string twin = {};                 ///< another one of the group that it is set beside
};

struct study {
    std::string_view name;
    std::string_view title;
    std::string_view paper;
    yardstick measure;
    std::vector<configuration> (*configurations)();
    /// What the published figures are, "" where there are none.
    std::string_view published;
};

std::span<const study> studies();

/// The study of this name. Throws base::error (usage) that names them all.
const study& study_named(std::string_view name);

}  // namespace mx::experiments
