// SPDX-License-Identifier: Apache-2.0
// Host interface of the kernels of emulated products. Pointers are device pointers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/packed_groups.hpp"
#include "libmx/gemm/split_step.hpp"

namespace mx::gemm::cuda {

/// Longer steps do not fit in a multiprocessor's shared memory.
inline constexpr int longest_step = 128;

/// How an operand is stored on the device.
enum class operand_form : std::uint8_t {
    plain,   ///< factors, and scales by group
    split,   ///< split_row
    packed,  ///< packed_row
};

inline operand_form form_of(const step_kind& k) {
    if (k.how == algorithm::fused && takes_split(k.rule)) return operand_form::split;
    const bool packs = k.how == algorithm::grouped && takes_packed(k.rule, k.element_fraction_bits);
    return packs ? operand_form::packed : operand_form::plain;
}

/// Rows of split and packed operands are stored in panels of as many, the last one filled up; in a
/// panel step by step.
inline constexpr unsigned panel_rows = 32;

/// An operand on the device.
struct device_operand {
    const std::byte* rows;       ///< plain: row by row, factors of all steps
    const scale_factor* scales;  ///< plain
    std::uint64_t steps;
    std::uint64_t panels;  ///< split and packed

    /// Split and packed: the rows of a panel in a step, `bytes` each. Panels behind the last are
    /// the last.
    MX_HD const std::byte* panel(std::uint64_t index, std::uint64_t step, unsigned bytes) const {
        const std::uint64_t at = index < panels ? index : panels - 1;
        // NOLINTNEXTLINE(bugprone-implicit-widening-of-multiplication-result): a few kilobytes
        return rows + (at * steps + step) * (panel_rows * bytes);
    }
};

struct tile_launch {
    step_kind kind;
    device_operand a, b;
    tile where;
    step_range steps;
    std::uint32_t* acc;  ///< where.rows x where.cols
};

/// Queues the kernel on `stream` (a cudaStream_t). Returns the runtime's error code, 0 on success.
int enqueue(const tile_launch& l, void* stream);

}  // namespace mx::gemm::cuda
