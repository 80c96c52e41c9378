// SPDX-License-Identifier: Apache-2.0
// THE LIST of backends of emulated products, from the reference to the fastest.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "libmx/gemm/engine.hpp"

namespace mx::gemm {

/// A way to walk tiles. Every backend leaves the same bits.
struct backend {
    std::string_view name;
    std::string_view summary;
    /// Whether this build has it and this processor can run it.
    bool (*available)();
    /// Whether it has kernels for this model on such operands.
    bool (*computes)(const accumulator& m, const operand& a, const operand& b);
    /// An engine, of the plain loop where it has no kernels. The operands have to outlive it.
    /// `threads` (base::thread_count) are used to make it.
    std::unique_ptr<engine> (*make)(const operand& a, const operand& b, const accumulator& m,
                                    int threads);
    /// Of backends on another device, null for the others: why it is not available.
    std::string (*missing)() = nullptr;
};

/// Every backend mx knows of, also those that this build or this processor lacks.
std::span<const backend> backends();

/// The fastest one available on this processor.
const backend& best_backend();

/// The backend named `name`; the fastest one for the empty name. Throws base::error: usage, naming
/// the nearest, when there is no such backend; unavailable when it cannot run here.
const backend& backend_named(std::string_view name);

}  // namespace mx::gemm
