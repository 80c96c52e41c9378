// SPDX-License-Identifier: Apache-2.0
// Work on arrays that stay on a device, besides the kernels of segments. Arrays are in C order
// without gaps; all pointers are device pointers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>

#include "libmx/base/half.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/ocp_block.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec::cuda {

/// Numbers of type f32, bf16 or f16.
struct device_numbers {
    std::byte* data = nullptr;
    tensor::dtype type = tensor::dtype::f32;

    MX_HD float get(std::uint64_t at) const { return stored_value(type, data, at); }
    /// Rounds once to nearest even: base::bf16_bits_of, base::half_bits_of.
    MX_HD void put(std::uint64_t at, float x) const {
        if (type == tensor::dtype::f32) {
            reinterpret_cast<float*>(data)[at] = x;
            return;
        }
        const bool bf16 = type == tensor::dtype::bf16;
        reinterpret_cast<std::uint16_t*>(data)[at] =
            bf16 ? base::bf16_bits_of(x) : base::half_bits_of(x);
    }
};

/// float32 numbers at an address.
inline device_numbers numbers_at(const float* x) {
    return {reinterpret_cast<std::byte*>(const_cast<float*>(x)), tensor::dtype::f32};
}

/// Blocks over a stack of matrices. Fewer than 2^32 elements.
struct stacked_blocks {
    std::uint32_t rows, cols;   ///< of all matrices
    std::uint32_t matrix_rows;  ///< of each
    std::uint32_t block_rows, block_cols;

    /// The place of an element: its block in the order of the grid, and its position in it.
    struct place {
        std::uint32_t row, col;
        std::uint64_t block;
        std::uint64_t position;
    };
    MX_HD place place_of(std::uint32_t at) const {
        const std::uint32_t row = at / cols, col = at % cols;
        const std::uint32_t matrix = row / matrix_rows, in_matrix = row % matrix_rows;
        const std::uint32_t across = (cols + block_cols - 1) / block_cols;
        const std::uint32_t down = (matrix_rows + block_rows - 1) / block_rows;
        const std::uint32_t block_row = in_matrix / block_rows, block_col = col / block_cols;
        const std::uint32_t left = cols - block_col * block_cols;
        const std::uint64_t wide = left < block_cols ? left : block_cols;
        return {row, col, (std::uint64_t{matrix} * down + block_row) * across + block_col,
                (in_matrix - block_row * block_rows) * wide + (col - block_col * block_cols)};
    }
    MX_HD std::uint64_t elements() const { return std::uint64_t{rows} * cols; }
    MX_HD std::uint64_t blocks() const {
        const std::uint64_t down = (matrix_rows + block_rows - 1) / block_rows;
        return rows / matrix_rows * down * ((cols + block_cols - 1) / block_cols);
    }
};

/// The results of a launch with one recipe to their places in an array: values, or codes, one to a
/// byte. Null: not wanted.
struct placed_blocks {
    stacked_blocks of;
    const ocp_params* params;  ///< of the recipe
    block_results blocks;      ///< with values unless it is an OCP recipe
    device_numbers values;
    std::uint8_t* codes;
    std::uint64_t row_step, col_step;  ///< of the results' places, of which the first is that of
                                       ///< element 0

    MX_HD std::uint64_t count() const { return of.elements(); }
    /// A value is O + S q, rounded to float32 once; NaN under a NaN scale.
    MX_HD float value(std::uint64_t block, std::uint64_t at) const {
        if (blocks.values != nullptr) return blocks.values[at];
        const float q = params->value[blocks.codes[at]];

        const float scale = scale_of_code(blocks.scale_code[block]);
        if (!params->has_offset) return with_nan_of(q, scale * q);
        const float offset = base::float_from_half(blocks.offset[block]);
        return with_nan_of(q,
                           static_cast<float>(static_cast<double>(offset) +
                                              static_cast<double>(scale) * static_cast<double>(q)));
    }
    MX_HD void operator()(std::uint64_t i) const {
        const stacked_blocks::place p = of.place_of(static_cast<std::uint32_t>(i));
        const std::uint64_t at = p.block * blocks.stride + p.position;
        const std::uint64_t to = p.row * row_step + p.col * col_step;
        if (codes != nullptr) codes[to] = blocks.codes[at];
        if (values.data != nullptr) values.put(to, value(p.block, at));
    }
};

/// Raises *most to the bits of the largest finite magnitude, each thread that of every 64th number.
struct largest_magnitude {
    device_numbers from;
    std::uint64_t numbers;
    std::uint32_t* most;

    MX_HD std::uint64_t count() const { return (numbers + 63) / 64; }
    MX_HD void operator()(std::uint64_t i) const {
        std::uint32_t own = 0;
        for (std::uint64_t at = i; at < numbers; at += count()) {
            const std::uint32_t magnitude = base::bits_of(from.get(at)) & base::f32_magnitude_mask;
            if (magnitude < base::f32_infinity && magnitude > own) own = magnitude;
        }
#if defined(__CUDA_ARCH__)
        if (own > *most) atomicMax(most, own);
#else
        *most = std::max(*most, own);
#endif
    }
};

/// Numbers in another type: base::bf16_bits_of, base::half_bits_of.
struct converted_numbers {
    device_numbers from, to;
    std::uint64_t numbers;

    MX_HD std::uint64_t count() const { return numbers; }
    MX_HD void operator()(std::uint64_t i) const { to.put(i, from.get(i)); }
};

/// Codes of 4, 6 or 8 bits as block::pack leaves them, from one to a byte; a thread packs eight.
struct packed_codes {
    const std::uint8_t* codes;
    std::uint64_t codes_count;
    std::uint32_t bits;
    std::uint8_t* to;

    MX_HD std::uint64_t count() const { return (codes_count + 7) / 8; }
    MX_HD void operator()(std::uint64_t i) const {
        std::uint64_t word = 0;
        const std::uint64_t left = codes_count - i * 8, some = left < 8 ? left : 8;
        for (std::uint64_t k = 0; k < some; ++k) {
            word |= std::uint64_t{codes[i * 8 + k]} << (k * bits);
        }
        for (std::uint64_t k = 0; k * 8 < some * bits; ++k) {
            to[i * bits + k] = static_cast<std::uint8_t>(word >> (k * 8));
        }
    }
};

/// The values of packed codes and scales.
struct decoded_blocks {
    stacked_blocks of;
    block_params params;
    dialect by;  ///< what the parameters point to: see settle
    format::scale_format scale_format;
    float scale[256];  ///< by code
    const std::uint8_t* codes;
    std::uint32_t bits;  ///< of a packed code
    const std::uint8_t* scale_codes;
    const std::uint16_t* offsets;  ///< null without
    device_numbers to;
    std::uint64_t first, row_step;  ///< of the elements among codes and results

    /// Must be called on a copy.
    MX_HD void settle() {
        params.by = &by;
        params.scale_format = &scale_format;
    }
    MX_HD std::uint64_t count() const { return of.elements(); }
    MX_HD void operator()(std::uint64_t i) const {
        const stacked_blocks::place p = of.place_of(static_cast<std::uint32_t>(i));
        const std::uint64_t at = first + p.row * row_step + p.col, bit = at * bits;
        std::uint32_t word = codes[bit / 8];
        if (bit % 8 + bits > 8) word |= std::uint32_t{codes[bit / 8 + 1]} << 8;
        const auto code = static_cast<std::uint8_t>(word >> bit % 8 & ((1u << bits) - 1u));
        const std::uint16_t offset = offsets == nullptr ? std::uint16_t{0} : offsets[p.block];
        const float s = scale[scale_codes[p.block]];
        const float value = scale_format.power_of_two()
                                ? power_decoder(params, s, offset).value<float>(code)
                                : float_scale_decoder(params, s).decode(code);
        to.put(at, with_nan_of(params.value[code], value));
    }
};

/// Rotates groups of `size` numbers (transform/rotation.hpp), `step` apart, in place: `groups` of
/// each run, one behind another. Runs begin `run_step` apart.
struct rotated_groups {
    static constexpr std::uint32_t most_size = 1280, most_base = 20;
    float* x;
    std::uint64_t runs, run_step, groups, step;
    std::uint32_t size, base;  ///< transform::base_of
    bool back;
    float factor;                          ///< transform::factor_of
    std::uint32_t minus[most_size / 32];   ///< a bit for each position whose sign is -1
    std::uint32_t minus_entry[most_base];  ///< of each row of the base's matrix, or its transpose
};

// A kernel's parameters are at most 4 KiB.
static_assert(sizeof(decoded_blocks) <= 4096);

using array_work = std::variant<placed_blocks, largest_magnitude, converted_numbers, packed_codes,
                                decoded_blocks, rotated_groups>;

/// Queues it on `stream` (a cudaStream_t). Returns the runtime's error code, 0 on success.
int enqueue(const array_work& what, void* stream);

/// The rotations of that.
int enqueue_rotation(const rotated_groups& what, void* stream);

}  // namespace mx::codec::cuda
