// SPDX-License-Identifier: Apache-2.0
// The entry points of the vector backends: one table per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libmx/base/simd/targets.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/operand_panel.hpp"

namespace mx::gemm::simd {

using base::simd::supported;
using base::simd::target;

/// A range of steps for some rows and one group of columns.
struct panel_tile {
    const accumulator* model;
    const operand_panel* a;    ///< rows, one per group
    const operand_panel* b;    ///< columns, panel_lanes per group
    std::size_t row, rows;     ///< of `a`
    std::size_t column_group;  ///< of `b`
    step_range steps;
    /// rows x panel_lanes: the accumulators before and after the steps. Values in the model's
    /// output format as float32, also for float16.
    float* c;
};

struct kernels {
    int (*float_lanes)();  ///< of the vectors these were compiled for
    /// Algorithm `fused`, panels of float32 values.
    void (*fused_narrow)(const panel_tile& t);
    /// The same, panels of float64 values.
    void (*fused_wide)(const panel_tile& t);
    /// Algorithm `grouped`, panels of integers.
    void (*grouped)(const panel_tile& t);
    /// Bounds of c + sum a[k] * b[k], rounded to float32; b and c have panel_lanes lanes. Not
    /// finite if a product is not; unspecified if all products are zero.
    void (*exact_ends)(const double* a, const double* b, std::size_t count, const float* c,
                       float* least, float* most);
    /// Fused multiply-adds onto c in ascending k. Not on sse4, which has no such instruction.
    void (*chain)(const float* a, const float* b, std::size_t count, bool descending, float* c);
};

/// The kernels of an instruction set, or null if this build lacks it.
const kernels* kernels_for(target t);

// The vector engines: tiles of a product with the kernels of an instruction set.

/// Whether the kernels support this model with such operands; others use the scalar loop.
bool computes(const accumulator& m, const operand& a, const operand& b);

/// An engine on kernels `k` for supported models, with the bits of the scalar loop. The operands
/// must outlive it; they are packed with this many threads (base::thread_count).
std::unique_ptr<engine> make_vector_engine(const kernels& k, const operand& a, const operand& b,
                                           const accumulator& m, int threads);

// Vector engines of software models.

/// Whether there are kernels of `t` for this model's algorithm: sums rounded once, and chains if
/// the instruction set has a fused multiply-add.
bool has_software_kernels(target t, const accumulator& m);

/// The engine for supported models, with the bits of the scalar loop.
std::unique_ptr<engine> make_software_vectors(const kernels& k, const operand& a, const operand& b,
                                              const accumulator& m);

// The effect of NaN and infinity among operands and scales on a step.

/// For every column of the tile, the value to add to the accumulator that enters step `step` of row
/// `row`, so that special operands take effect: 0, an infinity or NaN. Steps propagate infinite and
/// NaN accumulators; otherwise packed specials are zeros.
void special_addends(const panel_tile& t, std::size_t row, std::size_t step, float* addends);

}  // namespace mx::gemm::simd
