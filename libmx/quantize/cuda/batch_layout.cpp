// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/batch_layout.hpp"

#include <cstring>
#include <type_traits>

#include "libmx/quantize/cuda/row_formats.hpp"

namespace mx::quantize::cuda {
namespace {

// Where a kernel's loads and stores of any type may begin.
constexpr std::size_t alignment = 256;

std::size_t bytes_of(tensor::dtype type) {
    return static_cast<std::size_t>(tensor::row_of(type).bits / 8);
}

class piece {
  public:
    std::size_t take(std::size_t bytes) {
        const std::size_t at = end_;
        end_ += (bytes + alignment - 1) / alignment * alignment;
        return at;
    }
    std::size_t bytes() const { return end_; }

  private:
    std::size_t end_ = 0;
};

template <typename T>
void store(std::byte* at, const T& what) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(at, &what, sizeof what);
}

template <typename T>
T* at(std::byte* base, std::size_t offset) {
    return reinterpret_cast<T*>(base + offset);
}
template <typename T>
const T* at(const std::byte* base, std::size_t offset) {
    return reinterpret_cast<const T*>(base + offset);
}

// Segments share their block extents.
int body_of(const batch_recipe& r, std::span<const batch_segment> segments) {
    if (r.wanted == detail::stats || r.parts || segments.empty()) return segment_body;
    const segment_place& s = segments.front().place;
    const int body = cuda::body_of(*r.params, s.block_rows, s.block_cols);
    return body != segment_body && r.wanted == detail::codes ? body + coded_rows : body;
}

}  // namespace

batch_layout lay_out(const value_rectangle& values, std::span<const batch_segment> segments,
                     std::span<const batch_recipe> recipes) {
    batch_layout l{};
    std::size_t blocks = 0;
    for (const batch_segment& s : segments) {
        l.stride = block_stride(s.place.block_size());
        l.first_blocks.push_back(blocks);
        blocks += s.place.blocks();
    }
    l.first_blocks.push_back(blocks);

    piece there;
    l.recipes = there.take(recipes.size() * sizeof(device_recipe));
    l.segments = there.take(segments.size() * sizeof(device_segment));
    l.values = there.take(static_cast<std::size_t>(values.rows * values.cols) *
                          bytes_of(values.values.type));
    l.there_bytes = there.bytes();

    piece back;
    l.sums = back.take(recipes.size() * segments.size() * sizeof(block::segment_stats));
    for (const batch_recipe& r : recipes) {
        recipe_layout of{};
        of.wanted = r.wanted;
        if (r.wanted != detail::none) {
            of.codes = back.take(blocks * l.stride);
            of.scale_code = back.take(blocks);
            of.offset = back.take(blocks * sizeof(std::uint16_t));
            of.amax = back.take(blocks * sizeof(std::uint32_t));
            of.x_max = back.take(blocks * sizeof(std::uint32_t));
            of.x_min = back.take(blocks * sizeof(std::uint32_t));
        }
        if (r.wanted == detail::stats) of.stats = back.take(blocks * sizeof(block::block_stats));
        l.by_recipe.push_back(of);
    }
    l.back_bytes = back.bytes();
    return l;
}

launch fill(const batch_layout& layout, const value_rectangle& values,
            std::span<const batch_segment> segments, std::span<const batch_recipe> recipes,
            std::byte* there, std::byte* device_there, std::byte* device_back,
            std::byte* /*device_scratch*/) {
    launch l{};
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const recipe_layout& of = layout.by_recipe[r];
        device_recipe d{};
        d.params = *recipes[r].params;
        d.parts = recipes[r].parts;
        d.body = static_cast<std::uint8_t>(body_of(recipes[r], segments));
        l.bodies |= 1u << d.body;
        d.blocks.stride = layout.stride;
        if (of.wanted != detail::none) {
            d.blocks.codes = at<std::uint8_t>(device_back, of.codes);
            d.blocks.scale_code = at<std::uint8_t>(device_back, of.scale_code);
            d.blocks.offset = at<std::uint16_t>(device_back, of.offset);
            d.blocks.amax = at<std::uint32_t>(device_back, of.amax);
            d.blocks.x_max = at<std::uint32_t>(device_back, of.x_max);
            d.blocks.x_min = at<std::uint32_t>(device_back, of.x_min);
        }
        if (of.wanted == detail::stats) {
            d.blocks.stats = at<block::block_stats>(device_back, of.stats);
        }
        store(there + layout.recipes + r * sizeof d, d);
    }
    for (std::size_t s = 0; s < segments.size(); ++s) {
        const segment_place& p = segments[s].place;
        const device_segment d{segments[s].row * values.cols + segments[s].col,
                               p.first,
                               p.row_stride,
                               p.tensor_id,
                               layout.first_blocks[s],
                               static_cast<std::uint32_t>(p.rows),
                               static_cast<std::uint32_t>(p.cols),
                               static_cast<std::uint32_t>(p.block_rows),
                               static_cast<std::uint32_t>(p.block_cols)};
        store(there + layout.segments + s * sizeof d, d);
    }
    const std::size_t row = static_cast<std::size_t>(values.cols) * bytes_of(values.values.type);
    if (values.values.stride == values.cols) {
        std::memcpy(there + layout.values, values.values.data, values.rows * row);
    } else {
        for (std::uint64_t r = 0; r < values.rows; ++r) {
            std::memcpy(there + layout.values + r * row,
                        values.values.from(r * values.values.stride).data, row);
        }
    }
    l.values = {device_there + layout.values, values.cols, values.values.type};
    l.segments = at<device_segment>(device_there, layout.segments);
    l.segment_count = static_cast<std::uint32_t>(segments.size());
    l.recipes = at<device_recipe>(device_there, layout.recipes);
    l.recipe_count = static_cast<std::uint32_t>(recipes.size());
    l.stats = at<block::segment_stats>(device_back, layout.sums);
    return l;
}

batch_result result_of(const batch_layout& layout, std::size_t segment, std::size_t recipe,
                       const std::byte* back) {
    const std::size_t segments = layout.first_blocks.size() - 1;
    batch_result r{at<block::segment_stats>(back, layout.sums) + recipe * segments + segment, {}};
    const std::size_t first = layout.first_blocks[segment];
    const recipe_layout& of = layout.by_recipe[recipe];
    details_view& d = r.details;
    d.blocks = layout.first_blocks[segment + 1] - first;
    d.stride = layout.stride;
    if (of.wanted == detail::none) return r;
    d.codes = at<std::uint8_t>(back, of.codes) + first * layout.stride;
    d.scale_code = at<std::uint8_t>(back, of.scale_code) + first;
    d.offset = at<std::uint16_t>(back, of.offset) + first;
    d.amax = at<std::uint32_t>(back, of.amax) + first;
    d.x_max = at<std::uint32_t>(back, of.x_max) + first;
    d.x_min = at<std::uint32_t>(back, of.x_min) + first;
    if (of.wanted == detail::stats) d.stats = at<block::block_stats>(back, of.stats) + first;
    return r;
}

}  // namespace mx::quantize::cuda
