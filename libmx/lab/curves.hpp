// SPDX-License-Identifier: Apache-2.0
// Instabilities in loss curves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mx::lab {

/// What counts as an instability. Steps count from 1. The reference of a step is the median of the
/// `window` losses before it (all of them if there are fewer). No rule judges the first `burn_in`
/// steps; a loss that is NaN or infinite is unstable at any step under every rule, and so is the
/// last step of a run that diverged (judged_losses).
struct instability_rule {
    enum class kind : std::uint8_t { jump, excess };
    kind by = kind::excess;  ///< what first_instability() looks for
    std::size_t window = 100;
    std::size_t burn_in = 20;
    /// A jump: one loss above `factor` times its reference.
    double factor = 10;
    /// A sustained excess: more than half of `running` losses in a row, the first among them, above
    /// the reference of the first plus the larger of `spread` standard deviations and the share
    /// `least_excess` of the reference.
    /// The deviation is that of losses around their trend: the median of the differences between
    /// neighbours in the window, scaled as for normal ones.
    std::size_t running = 20;
    double spread = 3;
    double least_excess = 0.05;
    /// A high end: the mean of the last tenth of the losses exceeds the least mean of as many
    /// neighbours after the burn-in by more than this share of it.
    double margin = 0.1;
};

/// The rule for runs of this model and task, as requests spell them: jumps for the proxy's task of
/// the paper, whose losses approach zero; an excess for losses of other tasks, which cannot become
/// ten times as large without having been useless for long.
instability_rule rule_for(std::string_view model, std::string_view task);

/// The losses as the rules take them: NaN in place of the last one of a run that ended because a
/// loss or the norm of a gradient was not finite. That loss itself may be finite.
std::vector<float> judged_losses(std::vector<float> losses, bool diverged);

/// The first step that is unstable by `rule.by`, or nullopt.
std::optional<std::uint64_t> first_instability(std::span<const float> losses,
                                               const instability_rule& rule);

/// The first jump, or nullopt.
std::optional<std::uint64_t> first_jump(std::span<const float> losses,
                                        const instability_rule& rule = {});

/// The first step of the first sustained excess, or nullopt.
std::optional<std::uint64_t> first_excess(std::span<const float> losses,
                                          const instability_rule& rule = {});

/// By what share the mean of the last tenth of the losses (at least `running`) exceeds the least
/// mean of as many neighbours after the burn-in. Infinite if a loss after the burn-in is NaN or
/// infinite; nullopt if there are fewer than two tenths of them, or the least mean is not positive.
std::optional<double> rise_at_end(std::span<const float> losses, const instability_rule& rule = {});

}  // namespace mx::lab
