// SPDX-License-Identifier: Apache-2.0
// What happens to the values of a panel before they are quantized.
#pragma once

#include <span>
#include <vector>

#include "libmx/base/aligned.hpp"
#include "libmx/block/view.hpp"
#include "libmx/codec/segment.hpp"
#include "libmx/engine/panels.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::engine {

/// x + bias, times factor (each rounded to float32), then the rotation. A bias of 0 and a factor
/// of 1 leave every bit alone.
struct preparation {
    float bias = 0;
    float factor = 1;
    transform::rotation rotate;

    bool rotates() const { return rotate.what != transform::kind::none; }
    /// Whether values stay as they are.
    bool nothing() const { return *this == preparation{}; }
    friend bool operator==(const preparation&, const preparation&) = default;
};

/// Prepares the values of a panel in place: `x` is batches x rows x cols. `g` says along which axis
/// a rotation goes; it was laid out for one, where `how` has one.
void prepare(const preparation& how, const block::grid& g, const panel& where, std::span<float> x);

/// The same for values as they are stored (matrices follow each other at where.rows * from.stride
/// elements): widened into `room`, prepared there, and returned from there.
codec::stored_values prepare(const preparation& how, const block::grid& g, const panel& where,
                             const codec::stored_values& from, base::aligned_buffer<float>& room);

/// Whether the values prepared for two grids are the same ones.
bool alike(const preparation& how, const block::grid& a, const block::grid& b);

/// A whole tensor, prepared as by panels.
std::vector<float> prepared(const preparation& how, const block::grid& g,
                            std::span<const float> values);

/// Takes the rotation back, in place.
void rotate_back(const transform::rotation& r, const block::grid& g, const panel& where,
                 std::span<float> x);

}  // namespace mx::engine
