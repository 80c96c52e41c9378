// SPDX-License-Identifier: Apache-2.0
// Transforms the values of a panel before they are quantized.
#pragma once

#include <span>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/block/view.hpp"
#include "libmx/codec/segment.hpp"
#include "libmx/engine/panels.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::engine {

/// x + bias, times factor (each rounded to float32), then the rotation. A bias of 0 and a factor of
/// 1 change no bit.
struct input_transform {
    float bias = 0;
    float factor = 1;
    transform::rotation rotate;

    bool rotates() const { return rotate.what != transform::kind::none; }
    /// Whether values remain unchanged.
    bool nothing() const { return *this == input_transform{}; }
    friend bool operator==(const input_transform&, const input_transform&) = default;
};

/// Prepares the values of a panel in place: `x` is batches x rows x cols. `g` determines the axis
/// of the rotation, and must have been made for it.
void prepare(const input_transform& how, const block::grid& g, const panel& where,
             std::span<float> x);

/// The same for stored values (matrices are where.rows * from.stride elements apart): widens them
/// into `buffer`, prepares them there, and returns them.
codec::stored_values prepare(const input_transform& how, const block::grid& g, const panel& where,
                             const codec::stored_values& from, base::aligned_buffer<float>& buffer);

/// Whether two grids need the same prepared values.
bool alike(const input_transform& how, const block::grid& a, const block::grid& b);

/// Prepares a whole tensor; the result is the same as by panels.
std::vector<float> prepared(const input_transform& how, const block::grid& g,
                            std::span<const float> values);

/// Undoes the rotation in place.
void rotate_back(const transform::rotation& r, const block::grid& g, const panel& where,
                 std::span<float> x);

}  // namespace mx::engine
