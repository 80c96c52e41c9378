// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr: share, rate and time left. Nothing when stderr is no terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libmx/engine/control.hpp"

namespace mx::app {

/// What progress counts.
enum class progress_unit : std::uint8_t {
    elements,
    none,  ///< parts of the whole: no rate is shown
};

/// The callback for run_control::on_progress; empty when there is nothing to draw on or `quiet`.
/// The bar vanishes with the first output, at the latest when the last copy of the callback does.
std::function<void(const engine::progress&)> progress_bar(
    bool quiet, progress_unit unit = progress_unit::elements);

/// One line of fewer than `width` columns, as far as a bar of one cell allows:
/// "[#####.....]  42%  1.23 G elements/s  0:12 left".
std::string progress_text(const engine::progress& p, double seconds, progress_unit unit, int width);

}  // namespace mx::app
