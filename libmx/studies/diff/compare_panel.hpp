// SPDX-License-Identifier: Apache-2.0
// Compares one panel of every dump, value by value and code by code.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "libmx/codec/clamp_zone.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/studies/diff/figures.hpp"

namespace mx::diff {

/// The values of a tensor; several threads add to them.
struct shared_values {
    std::mutex guard;
    std::vector<value_figures> figures;  ///< one fewer than dumps
};

/// The codes of a tensor under one recipe; several threads add to them.
struct shared_codes {
    std::mutex guard;
    code_figures figures;
    codec::clamp_zone zone;  ///< where block maxima are looked at; empty: nowhere
};

/// Adds a panel to the figures of its tensor and, by job of the batch, of its jobs.
std::unique_ptr<engine::panel_visitor> compare_panel(
    const engine::run_panel& p, shared_values& values,
    std::span<const std::unique_ptr<shared_codes>> codes);

}  // namespace mx::diff
