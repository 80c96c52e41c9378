// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/batch_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/block/stored_codes.hpp"
#include "libmx/codec/cuda/nvfp4_bounds.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/segment_kernel.hpp"

namespace mx::codec::cuda {
namespace {

// The data that the parameters of a dialect recipe point to.
struct pointed_at {
    dialect by;
    format::scale_format scales;
};

// bf16 by code.
using bf16_table = std::array<std::uint16_t, 256>;

bf16_table table_of(tensor::dtype type) {
    bf16_table table{};
    const block::code_table& numbers = block::numbers_of(type);
    for (std::size_t code = 0; code < table.size(); ++code) {
        table[code] = static_cast<std::uint16_t>(base::bits_of(numbers[code]) >> 16);
    }
    return table;
}

class part_layout {
  public:
    explicit part_layout(std::size_t begin = 0) : end_(begin) {}
    std::size_t take(std::size_t bytes) {
        const std::size_t at = end_;
        end_ += padded(bytes);
        return at;
    }
    std::size_t bytes() const { return end_; }

  private:
    std::size_t end_;
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
std::uint32_t side(std::uint64_t n) {
    if (n > std::numeric_limits<std::uint32_t>::max()) {
        throw base::error(
            base::error_kind::unavailable,
            fmt::format("a row of {} elements that belong together: leave out --backend cuda", n));
    }
    return static_cast<std::uint32_t>(n);
}

device_segment device_segment_of(const placed_segment& s, std::uint64_t cols,
                                 std::size_t first_block) {
    const segment_place& p = s.place;
    return {s.row * cols + s.col, p.first,      p.row_stride,       p.tensor_id,       first_block,
            side(p.rows),         side(p.cols), side(p.block_rows), side(p.block_cols)};
}

// The received per-block results of a recipe.
block_results blocks_of(const batch_layout& layout, const recipe_layout& of, std::byte* back) {
    block_results d;
    d.blocks = layout.first_blocks.back();
    d.stride = layout.stride;
    part_layout arrays(of.arrays);
    for_each_array(d, of.asked, [&]<typename T>(T*& array, std::size_t entries) {
        array = at<T>(back, arrays.take(d.blocks * entries * sizeof(T)));
    });
    return d;
}

// All segments of a batch have the same block extents.
int body_of(const recipe_request& r, std::span<const placed_segment> segments) {
    if (r.parts || segments.empty()) return segment_body;
    const segment_place& s = segments.front().place;
    const int body = cuda::body_of(*r.params, s.block_rows, s.block_cols);
    return body != segment_body && r.wanted == detail::codes ? body + coded_rows : body;
}

bool has_nvfp4_table(const recipe_request& r, std::span<const placed_segment> segments) {
    if (r.parts || r.wanted != detail::none || segments.empty()) return false;
    const segment_place& s = segments.front().place;
    return takes_nvfp4(*r.params, s.block_rows, s.block_cols);
}

}  // namespace

batch_layout lay_out(const value_rectangle& values, std::span<const placed_segment> segments,
                     std::span<const recipe_request> recipes) {
    batch_layout l{};
    std::size_t blocks = 0;
    for (const placed_segment& s : segments) {
        l.stride = block_stride(s.place.block_size());
        l.first_blocks.push_back(blocks);
        blocks += s.place.blocks();
    }
    l.first_blocks.push_back(blocks);

    for (const recipe_request& r : recipes) {
        (r.params->ocp ? l.ocp_count : l.dialect_count) += 1;
        l.raises = l.raises || r.params->bumps;
    }

    part_layout there;
    l.recipes = there.take(l.ocp_count * sizeof(device_recipe));
    l.dialects = there.take(l.dialect_count * sizeof(dialect_recipe));
    l.pointed_at = there.take(l.dialect_count * sizeof(pointed_at));
    l.segments = there.take(segments.size() * sizeof(device_segment));
    const bool codes = !is_stored(values.values.type);
    if (codes) l.table = there.take(sizeof(bf16_table));
    l.there_bytes = there.bytes();

    part_layout back, scratch;
    const auto elements = static_cast<std::size_t>(values.rows * values.cols);
    l.value_bytes = static_cast<std::size_t>(tensor::stored_bytes(values.values.type, elements));
    l.values = scratch.take(l.value_bytes);
    if (codes) l.widened = scratch.take(elements * sizeof(std::uint16_t));
    if (l.raises) l.raised = scratch.take(blocks * l.stride);
    const auto tables = static_cast<std::size_t>(std::ranges::count_if(
        recipes, [&](const recipe_request& r) { return has_nvfp4_table(r, segments); }));
    l.nvfp4 = scratch.take(tables * sizeof(nvfp4_table));
    const bool rows = std::ranges::any_of(recipes, [&](const recipe_request& r) {
        return r.params->ocp ? body_of(r, segments) != segment_body : has_nvfp4_table(r, segments);
    });
    for (std::size_t s = 0; rows && s < segments.size(); ++s) {
        const std::size_t words =
            (segments[s].place.blocks() + blocks_per_mark - 1) / blocks_per_mark;
        l.marks_per_segment = std::max(l.marks_per_segment, words);
    }
    l.marks = scratch.take(recipes.size() * segments.size() * l.marks_per_segment *
                           sizeof(std::uint16_t));
    if (rows) {
        l.marked = scratch.take((1 + recipes.size() * segments.size()) * sizeof(std::uint32_t));
    }
    l.sums = back.take(recipes.size() * sizeof(block::exact_totals));
    l.sent_bytes = l.there_bytes + back.bytes();
    l.tallies = back.take(recipes.size() * segments.size() * sizeof(segment_tally));
    std::size_t ocp = 0, dialects = l.ocp_count;
    for (const recipe_request& r : recipes) {
        const recipe_layout of{r, (r.params->ocp ? ocp : dialects)++, back.bytes()};
        block_results d;
        d.stride = l.stride;
        for_each_array(d, r, [&](const auto* array, std::size_t entries) {
            back.take(blocks * entries * sizeof *array);
        });
        l.by_recipe.push_back(of);
    }
    l.scratch_bytes = scratch.bytes();
    l.back_bytes = back.bytes();
    return l;
}

launch fill(const batch_layout& layout, const value_rectangle& values,
            std::span<const placed_segment> segments, std::span<const recipe_request> recipes,
            std::byte* there, std::byte* device_there, std::byte* device_back,
            std::byte* device_scratch) {
    launch l{};
    const std::size_t segment_count = segments.size();
    auto* const sums = at<block::exact_totals>(device_back, layout.sums);
    auto* const tallies = at<segment_tally>(device_back, layout.tallies);
    auto* nvfp4 = at<nvfp4_table>(device_scratch, layout.nvfp4);
    std::memset(there + layout.there_bytes, 0, layout.sent_bytes - layout.there_bytes);
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const recipe_layout& of = layout.by_recipe[r];
        if (recipes[r].params->ocp) {
            device_recipe d{};
            d.params = *recipes[r].params;
            d.blocks = blocks_of(layout, of, device_back);
            d.totals = sums + of.slot;
            d.parts = recipes[r].parts;
            d.body = static_cast<std::uint8_t>(body_of(recipes[r], segments));
            l.bodies |= 1u << d.body;
            store(there + layout.recipes + of.slot * sizeof d, d);
            continue;
        }
        const std::size_t index = of.slot - layout.ocp_count;
        dialect_recipe d{};
        d.params = *recipes[r].params;
        const pointed_at pointed{*d.params.by, *d.params.scale_format};
        const std::size_t lies = layout.pointed_at + index * sizeof pointed;
        store(there + lies, pointed);
        d.params.by = at<dialect>(device_there, lies + offsetof(pointed_at, by));
        d.params.conversion.by = d.params.by;
        d.params.scale_format =
            at<format::scale_format>(device_there, lies + offsetof(pointed_at, scales));
        d.blocks = blocks_of(layout, of, device_back);
        d.totals = sums + of.slot;
        d.parts = recipes[r].parts;
        if (has_nvfp4_table(recipes[r], segments)) {
            d.nvfp4 = nvfp4++;
            l.nvfp4_rows = true;
        } else {
            (pointed.scales.power_of_two() ? l.powers : l.floats) = true;
        }
        store(there + layout.dialects + index * sizeof d, d);
    }
    for (std::size_t s = 0; s < segment_count; ++s) {
        const device_segment d =
            device_segment_of(segments[s], values.cols, layout.first_blocks[s]);
        store(there + layout.segments + s * sizeof d, d);
    }
    l.values = {device_scratch + layout.values, values.cols, values.values.type};
    if (!is_stored(values.values.type)) {
        store(there + layout.table, table_of(values.values.type));
        l.codes = {at<std::uint8_t>(device_scratch, layout.values), values.rows * values.cols,
                   at<std::uint16_t>(device_there, layout.table),
                   at<value_group>(device_scratch, layout.widened),
                   tensor::row_of(values.values.type).bits == 4};
        l.values = {device_scratch + layout.widened, values.cols, tensor::dtype::bf16};
    }
    l.segments = at<device_segment>(device_there, layout.segments);
    l.segment_count = static_cast<std::uint32_t>(segment_count);
    l.recipes = at<device_recipe>(device_there, layout.recipes);
    l.recipe_count = static_cast<std::uint32_t>(layout.ocp_count);
    l.tallies = tallies;
    l.marks = at<std::uint16_t>(device_scratch, layout.marks);
    l.marks_per_segment = static_cast<std::uint32_t>(layout.marks_per_segment);
    if (layout.marks_per_segment != 0) {
        l.marked = at<std::uint32_t>(device_scratch, layout.marked);
    }
    l.dialects = at<dialect_recipe>(device_there, layout.dialects);
    l.dialect_count = static_cast<std::uint32_t>(layout.dialect_count);
    l.stride = layout.stride;
    if (layout.raises) l.raised = at<std::uint8_t>(device_scratch, layout.raised);
    return l;
}

device_result result_of(const batch_layout& layout, std::size_t segment, std::size_t recipe,
                        std::byte* back) {
    const std::size_t segments = layout.first_blocks.size() - 1;
    const recipe_layout& of = layout.by_recipe[recipe];
    const std::size_t first = layout.first_blocks[segment];
    block_results d = blocks_of(layout, of, back);
    d.blocks = layout.first_blocks[segment + 1] - first;
    for_each_array(d, of.asked,
                   [&](auto*& array, std::size_t entries) { array += first * entries; });
    return {at<segment_tally>(back, layout.tallies) + of.slot * segments + segment,
            at<block::exact_totals>(back, layout.sums) + of.slot, d};
}

}  // namespace mx::codec::cuda
