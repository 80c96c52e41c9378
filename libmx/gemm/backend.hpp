// SPDX-License-Identifier: Apache-2.0
// What a backend is: chains of steps, all outputs of a product at once. Every backend leaves the
// same bits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

/// Neighbouring steps of a product, of fused_length elements each; the last step of K is filled up
/// with zeros.
struct stretch {
    const accumulator* model = nullptr;
    const operand* a = nullptr;  ///< rows of the result
    const operand* b = nullptr;  ///< columns of the result
    std::size_t first_step = 0, steps = 0;
    bool descending = false;  ///< the last of them first

    int threads = 0;  ///< as base::thread_count takes it
    const std::atomic<bool>* cancel = nullptr;
    /// Called from any thread, one at a time, with outputs times steps; may be empty.
    std::function<void(std::uint64_t done)> on_progress;
};

struct backend {
    std::string_view name;
    std::string_view summary;
    /// Whether this build has it and this processor can run it.
    bool (*available)();
    /// Whether it computes this model on such operands.
    bool (*takes)(const accumulator& model, const operand& a, const operand& b);
    /// Takes every accumulator through the steps. `c`, a.rows x b.rows in row-major order, has the
    /// accumulators' bits (f16 bits of models that give f16) and gets the results'; NaN is
    /// canonical.
    void (*advance)(const stretch& s, std::span<std::uint32_t> c);
};

}  // namespace mx::gemm
