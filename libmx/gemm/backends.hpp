// SPDX-License-Identifier: Apache-2.0
// THE LIST of what backends (base/backends.hpp) multiply with.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "libmx/base/backends.hpp"
#include "libmx/gemm/engine.hpp"

namespace mx::gemm {

/// A way to walk tiles.
struct backend : base::backend {
    /// Whether it has kernels for this model on such operands.
    bool (*computes)(const accumulator& m, const operand& a, const operand& b);
    /// An engine, of the plain loop where it has no kernels. The operands have to outlive it.
    /// `threads` (base::thread_count) are used to make it.
    std::unique_ptr<engine> (*make)(const operand& a, const operand& b, const accumulator& m,
                                    int threads);
};

/// In the order of base::backends.
std::span<const backend> backends();

/// The fastest one available on this processor.
const backend& best_backend();

/// The backend named `name`; the fastest one for the empty name. Throws as base::backend_named
/// does.
const backend& backend_named(std::string_view name);

}  // namespace mx::gemm
