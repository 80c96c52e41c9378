// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/pack_blocks.hpp"

#include <algorithm>
#include <cstring>

#include "libmx/base/half.hpp"

namespace mx::codec {
namespace {

template <typename T>
void widen_row(const std::byte* from, std::size_t count, float* to) {
    for (std::size_t i = 0; i < count; ++i) {
        T v;
        std::memcpy(&v, from + i * sizeof(T), sizeof(T));
        if constexpr (std::is_same_v<T, float>) {
            to[i] = v;
        } else {
            to[i] = base::float_from_half(v);
        }
    }
}

void widen_row(const stored_values& values, std::uint64_t at, std::size_t count, float* to) {
    const std::byte* from = values.from(at).data;
    switch (values.type) {
        case tensor::dtype::bf16:
            for (std::size_t i = 0; i < count; ++i) {
                std::uint16_t v;
                std::memcpy(&v, from + i * sizeof v, sizeof v);
                to[i] = base::float_from_bf16(v);
            }
            return;
        case tensor::dtype::f16:
            return widen_row<std::uint16_t>(from, count, to);
        default:
            return widen_row<float>(from, count, to);
    }
}

}  // namespace

void pack_blocks(const stored_values& values, const segment_place& place, block_run& run) {
    run.place = place;
    run.stride = block_stride(place.block_size());
    run.blocks = place.blocks();
    run.draws = nullptr;
    float* const to = run.room.room_for(run.blocks * run.stride);
    run.x = to;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const block_extent e = extent_of(place, b);
        float* const block = to + b * run.stride;
        const auto cols = static_cast<std::size_t>(e.cols);
        for (std::size_t r = 0; r < e.rows; ++r) {
            widen_row(values, (e.row + r) * values.stride + e.col, cols, block + r * cols);
        }
        std::fill(block + e.size(), block + run.stride, 0.0f);
    }
}

}  // namespace mx::codec
