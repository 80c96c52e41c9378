// SPDX-License-Identifier: Apache-2.0
// THE LIST of matrix product implementations of the backends (base/backends.hpp).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "libmx/base/backends.hpp"
#include "libmx/gemm/engine.hpp"

namespace mx::gemm {

/// A way to process tiles.
struct backend : base::backend {
    /// Whether it has kernels for this model with such operands.
    bool (*computes)(const accumulator& m, const operand& a, const operand& b);
    /// Makes an engine; the scalar loop if there are no kernels. The operands must outlive it. Uses
    /// `threads` threads (base::thread_count) to make it.
    std::unique_ptr<engine> (*make)(const operand& a, const operand& b, const accumulator& m,
                                    int threads);
};

/// In the order of base::backends.
std::span<const backend> backends();

/// The fastest one available on this CPU.
const backend& best_backend();

/// The backend named `name`; the fastest one for an empty name. Throws as base::backend_named does.
const backend& backend_named(std::string_view name);

}  // namespace mx::gemm
