// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/array_quantizer.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "libmx/block/packing.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec::cuda {
namespace {

// The bodies of segments read 16 bytes at a time.
bool is_aligned(const std::byte* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; }

std::uint64_t width_of(tensor::dtype type) { return type == tensor::dtype::f32 ? 4 : 2; }

device_numbers from(device_numbers x, std::uint64_t at) {
    return {x.data + at * width_of(x.type), x.type};
}

// Blocks are at most as large as the matrix.
block::grid clipped(block::grid g) {
    g.block_rows = std::min(g.block_rows, g.over.rows);
    g.block_cols = std::min(g.block_cols, g.over.cols);
    return g;
}

std::uint32_t narrow(std::uint64_t n) { return static_cast<std::uint32_t>(n); }

}  // namespace

stacked_blocks array_quantizer::stacked(const part& of, const block::grid& g) {
    return {narrow(of.rows), narrow(of.cols), narrow(of.matrix_rows), narrow(g.block_rows),
            narrow(g.block_cols)};
}

// Memory that queued work may use is not freed before it is done.
std::byte* array_quantizer::room(base::cuda::held_memory& in, std::size_t bytes) {
    if (in.data() != nullptr && bytes > in.size()) work().wait();
    return in.reserve(bytes);
}

template <typename Each>
void array_quantizer::for_each_part(const block::grid& g, const Each& each) const {
    const block::view& over = g.over;
    const block::segmentation s = block::segments_of(g);
    const std::uint64_t tall = s.rows * g.block_rows, wide = s.cols * g.block_cols;
    const auto some = [this](std::uint64_t each_has) {
        return std::max<std::uint64_t>(1, elements_ / each_has);
    };
    if (over.rows * over.cols <= elements_) {
        const std::uint64_t matrices = some(over.rows * over.cols);
        for (std::uint64_t m = 0; m < over.batch; m += matrices) {
            const std::uint64_t rows = std::min(matrices, over.batch - m) * over.rows;
            each(part{m * over.rows, rows, over.rows, 0, over.cols});
        }
        return;
    }
    const std::uint64_t high = tall * some(tall * over.cols);
    const std::uint64_t long_part =
        tall * over.cols <= elements_ ? over.cols : wide * some(tall * wide);
    for (std::uint64_t m = 0; m < over.batch; ++m) {
        for (std::uint64_t row = 0; row < over.rows; row += high) {
            const std::uint64_t rows = std::min(high, over.rows - row);
            for (std::uint64_t col = 0; col < over.cols; col += long_part) {
                each(part{m * over.rows + row, rows, rows, col,
                          std::min(long_part, over.cols - col)});
            }
        }
    }
}

void array_quantizer::quantize(const block_params& p, const block::grid& given,
                               std::uint64_t tensor_id, device_numbers x,
                               const array_results& results) {
    if (given.over.elements() == 0) return;
    const block::grid g = clipped(given);
    const std::uint64_t count = g.over.elements();
    if (!is_aligned(x.data)) {
        const device_numbers copy{room(aligned_, count * width_of(x.type)), x.type};
        work().copy_across(copy.data, x.data, count * width_of(x.type));
        x = copy;
    }
    array_results to = results;
    for_each_part(g, [&](const part& of) {
        quantize_part(p, g, of, tensor_id, x, to);
        const std::uint64_t done = stacked(of, g).blocks();
        if (to.scale_codes != nullptr) to.scale_codes += done;
        if (to.offsets != nullptr) to.offsets += done;
    });
}

void array_quantizer::quantize_part(const block_params& p, const block::grid& g, const part& of,
                                    std::uint64_t tensor_id, device_numbers x,
                                    const array_results& to) {
    const bool blocks_wanted = to.values.data != nullptr || to.codes != nullptr ||
                               to.scale_codes != nullptr || to.offsets != nullptr;
    const recipe_request request{.params = &p,
                                 .wanted = blocks_wanted ? detail::codes : detail::none,
                                 .values = to.values.data != nullptr,
                                 .sums = to.stats != nullptr,
                                 .all_values = true};
    const block::segmentation s = block::segments_of(g);
    const std::uint64_t tall = s.rows * g.block_rows, wide = s.cols * g.block_cols;
    std::vector<placed_segment> segments;
    const std::uint64_t cols = g.over.cols;
    for (std::uint64_t matrix = 0; matrix < of.rows; matrix += of.matrix_rows) {
        for (std::uint64_t r = 0; r < of.matrix_rows; r += tall) {
            for (std::uint64_t c = of.col; c < of.col + of.cols; c += wide) {
                const std::uint64_t row = of.row + matrix + r;
                const segment_place place{tensor_id,
                                          row * cols + c,
                                          cols,
                                          std::min(tall, of.matrix_rows - r),
                                          std::min(wide, of.col + of.cols - c),
                                          g.block_rows,
                                          g.block_cols};
                segments.push_back({place, row, c});
            }
        }
    }
    // A rectangle of no rows: values are on the device.
    const value_rectangle none{{x.type, nullptr, cols}, 0, cols};
    const std::span<const recipe_request> requests(&request, 1);
    const batch_layout l = lay_out(none, segments, requests);
    std::byte* const there = room(on_.card, l.there_bytes + l.back_bytes + l.scratch_bytes);
    std::byte* const back = there + l.there_bytes;
    std::vector<std::byte> here(l.sent_bytes);
    launch kernels =
        fill(l, none, segments, requests, here.data(), there, back, back + l.back_bytes);
    kernels.values = {x.data, cols, x.type};
    work().send(there, here.data(), here.size());
    start_.segments(kernels, work());

    const block_results found = result_of(l, 0, 0, back).of_blocks;
    if (to.values.data != nullptr || to.codes != nullptr) {
        const std::uint64_t first = of.row * cols + of.col;
        const bool values = to.values.data != nullptr;
        placed_blocks placed{stacked(of, g),
                             p.ocp ? &kernels.recipes->params : &kernels.dialects->params,
                             found,
                             {},
                             nullptr,
                             values ? to.row_step : cols,
                             values ? to.col_step : 1};
        if (values) {
            placed.values = from(to.values, of.row * to.row_step + of.col * to.col_step);
        } else {
            placed.codes = to.codes + first;
        }
        start(placed);
    }
    const std::size_t blocks = l.first_blocks.back();
    if (to.scale_codes != nullptr) {
        work().copy_across(reinterpret_cast<std::byte*>(to.scale_codes),
                           reinterpret_cast<const std::byte*>(found.scale_code), blocks);
    }
    if (to.offsets != nullptr) {
        work().copy_across(reinterpret_cast<std::byte*>(to.offsets),
                           reinterpret_cast<const std::byte*>(found.offset),
                           blocks * sizeof *found.offset);
    }
    if (to.stats == nullptr) return;
    std::vector<std::byte> received(l.by_recipe.front().arrays);  // sums and tallies come first
    work().copy_back(received.data(), back, received.size());
    work().wait();
    for (std::size_t i = 0; i < segments.size(); ++i) {
        add_counts(*result_of(l, i, 0, received.data()).tally, *to.stats);
    }
    block::exact_totals sums = *result_of(l, 0, 0, received.data()).totals;
    block::each_exact_sum([](base::exact_sum& one) { one.settle(); }, sums);
    to.stats->sum.merge(sums);
}

void array_quantizer::dequantize(const block_params& p, const block::grid& given, int bits,
                                 const packed_array& packed, device_numbers to) {
    if (given.over.elements() == 0) return;
    const block::grid g = clipped(given);
    decoded_blocks w{};
    w.params = p;
    w.by = *p.by;
    w.scale_format = *p.scale_format;
    for (std::uint32_t code = 0; code < 256; ++code) {
        w.scale[code] = format::decode_scale(*p.scale_format, code);
    }
    w.bits = narrow(static_cast<std::uint64_t>(block::packed_bits(bits)));
    w.codes = packed.codes;
    w.to = to;
    w.row_step = g.over.cols;
    std::uint64_t block = 0;
    for_each_part(g, [&](const part& of) {
        w.of = stacked(of, g);
        w.first = of.row * g.over.cols + of.col;
        w.scale_codes = packed.scale_codes + block;
        w.offsets = packed.offsets == nullptr ? nullptr : packed.offsets + block;
        start(w);
        block += w.of.blocks();
    });
}

void array_quantizer::cast(const element_cast& to, const base::random_key& key, device_numbers x,
                           std::uint64_t count, float* values) {
    constexpr std::uint64_t most = std::uint64_t{1} << 30;
    element_launch l{};
    l.work = {to, *to.number.by, key};
    l.work.to.number.by = nullptr;  // the host's pointer is not valid there
    l.type = x.type;
    // A result without a code, whose place the kernel notes, is a value as well.
    l.without_code = reinterpret_cast<std::uint32_t*>(room(on_.card, sizeof *l.without_code));
    for (std::uint64_t at = 0; at < count; at += most) {
        l.x = from(x, at).data;
        l.count = narrow(std::min(most, count - at));
        l.first = at;
        l.values = values + at;
        start_.elements(l, work());
    }
}

void array_quantizer::rotate(const transform::rotation& r, float* x, std::uint64_t rows,
                             std::uint64_t cols, transform::run along, bool back) {
    const bool down = along == transform::run::column;
    const std::uint64_t length = down ? rows : cols;
    const std::vector<float> signs = transform::signs_of(r);
    rotated_groups l{};
    l.runs = down ? cols : rows;
    l.run_step = down ? 1 : cols;
    l.step = down ? cols : 1;
    l.back = back;
    // Groups of `size` from position `at` of every run on.
    const auto turn = [&](std::uint64_t at, std::uint64_t groups, std::size_t size) {
        l.x = x + at * l.step;
        l.groups = groups;
        l.size = static_cast<std::uint32_t>(size);
        l.base = static_cast<std::uint32_t>(transform::base_of(size));
        l.factor = transform::factor_of(size);
        std::ranges::fill(l.minus, 0u);
        for (std::size_t i = 0; i < size; ++i) {
            if (signs[at % signs.size() + i] < 0) l.minus[i / 32] |= 1u << i % 32;
        }
        std::ranges::fill(l.minus_entry, 0u);
        for (std::size_t i = 0; i < l.base; ++i) {
            for (std::size_t j = 0; j < l.base; ++j) {
                const int entry = transform::base_entry(l.base, back ? j : i, back ? i : j);
                if (entry < 0) l.minus_entry[i] |= 1u << j;
            }
        }
        start(l);
    };
    const std::uint64_t whole = length / signs.size();
    if (whole > 0) turn(0, whole, signs.size());
    for (std::uint64_t at = whole * signs.size(); at < length;) {
        const std::uint64_t piece = std::bit_floor(length - at);
        turn(at, 1, static_cast<std::size_t>(piece));
        at += piece;
    }
}

std::uint32_t array_quantizer::finite_amax(device_numbers x, std::uint64_t count) {
    std::uint32_t most = 0;
    auto* const there = reinterpret_cast<std::uint32_t*>(room(on_.card, sizeof most));
    work().send(reinterpret_cast<std::byte*>(there), &most, sizeof most);
    start(largest_magnitude{x, count, there});
    work().copy_back(reinterpret_cast<std::byte*>(&most), reinterpret_cast<std::byte*>(there),
                     sizeof most);
    work().wait();
    return most;
}

}  // namespace mx::codec::cuda
