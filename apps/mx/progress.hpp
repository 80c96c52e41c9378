// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr: share, rate and time left. Nothing when stderr is no terminal.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "libmx/pipeline/control.hpp"

namespace mx::app {

/// The callback for run_control::on_progress; empty when there is nothing to draw on or `quiet`.
/// The bar vanishes when the last copy of the callback does.
std::function<void(const pipeline::progress&)> progress_bar(bool quiet);

/// One line: "[#####.....]  42%  1.23 G elements/s  0:12 left".
std::string progress_text(const pipeline::progress& p, double seconds);

}  // namespace mx::app
