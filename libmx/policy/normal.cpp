// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/normal.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/engine/element_quantizer.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::policy {
namespace {

// The sum of sixteen uniform numbers is nearly normal, and computed from integers, without a
// library's logarithm. Its excess kurtosis, -1.2 / 16, is removed by the next term of Cornish and
// Fisher's expansion.
float normal(std::uint32_t index) {
    std::int32_t sum = 0;
    for (std::uint32_t half = 0; half < 2; ++half) {
        const base::philox_words w = base::philox4x32_10({{index, half, 0, 0}}, 2, 0);
        for (const std::uint32_t u : w.word) {
            sum += static_cast<std::int32_t>(u >> 16) + static_cast<std::int32_t>(u & 0xffffu);
        }
    }
    // Odd, hence never zero; the deviation of the sum is 2^16 * sqrt(16 / 12).
    const std::int32_t centred = 2 * (sum - 8 * 65535) + 1;
    const double y = static_cast<double>(centred) * (0.8660254037844386 / 131072);
    return static_cast<float>(y + 1.2 / 16 / 24 * (y * y * y - 3 * y));
}

// `least` or more, a multiple of `step`.
std::uint64_t filled(std::uint64_t least, int step) {
    const auto s = static_cast<std::uint64_t>(step);
    return (std::max(least, s) + s - 1) / s * s;
}

constexpr std::uint64_t usual_rows = 16, usual_columns = 4096;  // at least

std::vector<float> normal_numbers(std::uint64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = normal(static_cast<std::uint32_t>(i));
    return x;
}

}  // namespace

metrics::row figures_on_normal_data(const codec::recipe& r) {
    codec::block_shape block = r.block;
    if (codec::is_channel_scaled(r)) block.cols = static_cast<int>(usual_columns);
    codec::placed_segment s;
    s.place.rows = filled(usual_rows, block.rows);
    s.place.cols = filled(usual_columns, block.cols);
    s.place.row_stride = s.place.cols;
    s.place.block_rows = static_cast<std::uint64_t>(block.rows);
    s.place.block_cols = static_cast<std::uint64_t>(block.cols);

    // Nearly all blocks divide these; making them takes longer than quantizing them.
    static const std::vector<float> usual = normal_numbers(usual_rows * usual_columns);
    std::vector<float> more;
    if (s.place.elements() != usual.size()) more = normal_numbers(s.place.elements());
    const std::vector<float>& values = more.empty() ? usual : more;
    float largest = 0;
    for (const float x : values) largest = std::max(largest, std::abs(x));
    const codec::block_params params = codec::params_of(r, {base::bits_of(largest)});
    const codec::value_rectangle all{
        {tensor::dtype::f32, reinterpret_cast<const std::byte*>(values.data()), s.place.cols},
        s.place.rows,
        s.place.cols};

    metrics::totals sums;
    sums.has_subnormals = r.element->has_subnormals();
    sums.element_bits = r.element->bits();
    sums.bits_per_block = codec::bits_per_block(r);
    sums.has_blocks = params.has_blocks;
    const codec::recipe_request request{&params};
    const auto quantizer = params.has_blocks ? codec::best_backend().make_quantizer()
                                             : engine::make_element_quantizer();
    quantizer->run(all, {&s, 1}, {&request, 1},
                   [&](std::size_t, std::span<const codec::segment_result> by_recipe) {
                       sums.add(*by_recipe.front().stats);
                   });
    return metrics::row_of(sums);
}

}  // namespace mx::policy
