// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/element_quantizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/codec/stored_value.hpp"
#include "libmx/format/decode.hpp"

namespace mx::engine {
namespace {

// Adds `n` elements of value `x` with the same random draw.
void add_elements(const codec::block_params& p, float x, std::uint32_t draw, std::uint64_t n,
                  bool parts, block::segment_stats& out) {
    const format::element_params& f = p.element;
    const std::uint32_t magnitude = base::bits_of(x) & base::f32_magnitude_mask;
    out.count.elements += n;
    if (magnitude >= base::f32_infinity) {
        (magnitude == base::f32_infinity ? out.count.inf : out.count.nan) += n;
        return;
    }
    const float scale = p.tensor.decode;
    const format::encoded e =
        format::encode_magnitude(f, p.mode, base::bits_of(x / scale), 0, draw);
    const float q = format::decode(*p.format, format::with_sign(f, e.magnitude, e.negative));
    const auto d = static_cast<double>(q * scale), v = static_cast<double>(x);
    codec::element_tally tally;
    const block::error_part part =
        tally.add(f, magnitude != 0, e, e.magnitude, magnitude != 0 && d == 0);
    block::block_stats one{};
    tally.finish(f, one);
    block::each_count([n](std::uint64_t& to, std::uint32_t count) { to += n * count; }, out.count,
                      one.count);
    out.max_error = std::max(out.max_error, std::abs(d - v));
    out.counted_max = std::max(out.counted_max, magnitude);
    // Exact: float32 numbers times less than 2^28.
    const auto times = static_cast<double>(n);
    out.sum.x.add(times * v);
    block::add_product(out.sum.x2, times * v, v);
    out.sum.d.add(times * d);
    block::add_product(out.sum.d2, times * d, d);
    block::add_product(out.sum.xd, times * v, d);
    if (!parts || part == block::error_part::grid) return;
    auto& to = part == block::error_part::clamp ? out.sum.clamp : out.sum.underflow;
    block::add_product(to, times * v, v);
    block::add_product(to, times * d, d);
    block::add_product(to, -2 * times * v, d);
}

// How often each 16-bit value occurs.
class value_counts {
  public:
    // Fewer elements take less time one by one.
    static bool worth(const codec::value_rectangle& values) {
        const std::uint64_t elements = values.rows * values.cols;
        return values.values.type != tensor::dtype::f32 && elements >= std::uint64_t{1} << 14 &&
               elements < std::uint64_t{1} << 28;
    }

    void clear() { counts_.assign(1u << 16, 0); }

    void add(const codec::stored_values& values, const codec::segment_place& place) {
        for (std::uint64_t row = 0; row < place.rows; ++row) {
            const std::byte* const data = values.data + row * values.stride * sizeof(std::uint16_t);
            for (std::uint64_t col = 0; col < place.cols; ++col) {
                std::uint16_t word;
                std::memcpy(&word, data + col * sizeof word, sizeof word);
                ++counts_[word];
            }
        }
    }

    void total(const codec::block_params& p, tensor::dtype type, bool parts,
               block::segment_stats& out) const {
        for (std::uint32_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] == 0) continue;
            const auto word = static_cast<std::uint16_t>(i);
            const float x = codec::stored_value(type, reinterpret_cast<const std::byte*>(&word), 0);
            add_elements(p, x, 0, counts_[i], parts, out);
        }
    }

  private:
    std::vector<std::uint32_t> counts_;
};

void add_each(const codec::block_params& p, const codec::stored_values& values,
              const codec::segment_place& place, bool parts, block::segment_stats& out) {
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, place.tensor_id};
    for (std::uint64_t row = 0; row < place.rows; ++row) {
        for (std::uint64_t col = 0; col < place.cols; ++col) {
            const std::uint64_t at = place.first + row * place.row_stride + col;
            add_elements(p,
                         codec::stored_value(values.type, values.data, row * values.stride + col),
                         random ? base::random_u32(key, at) : 0u, 1, parts, out);
        }
    }
}

class element_quantizer final : public codec::quantizer {
  public:
    void run(const codec::value_rectangle& values, std::span<const codec::placed_segment> segments,
             std::span<const codec::recipe_request> recipes,
             const codec::segment_visitor& visit) override {
        stats_.resize(recipes.size());
        results_.resize(recipes.size());
        const bool counts = value_counts::worth(values);
        if (counts) counts_.clear();
        for (std::size_t s = 0; s < segments.size(); ++s) {
            stop_if_cancelled();
            const codec::placed_segment& segment = segments[s];
            const codec::stored_values from =
                values.values.from(segment.row * values.values.stride + segment.col);
            if (counts) counts_.add(from, segment.place);
            for (std::size_t r = 0; r < recipes.size(); ++r) {
                const codec::block_params& p = *recipes[r].params;
                const bool parts = recipes[r].parts;
                stats_[r] = {};
                results_[r] = {&stats_[r], {}, p.tensor};
                if (!counts || p.mode.how == format::rounding::stochastic) {
                    add_each(p, from, segment.place, parts, stats_[r]);
                } else if (s + 1 == segments.size()) {
                    counts_.total(p, from.type, parts, stats_[r]);
                }
            }
            visit(s, results_);
        }
    }

  private:
    value_counts counts_;
    std::vector<block::segment_stats> stats_;
    std::vector<codec::segment_result> results_;
};

}  // namespace

std::unique_ptr<codec::quantizer> make_element_quantizer() {
    return std::make_unique<element_quantizer>();
}

}  // namespace mx::engine
