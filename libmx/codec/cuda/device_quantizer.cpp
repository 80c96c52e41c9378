// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/device_quantizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include "libmx/base/aligned.hpp"
#include "libmx/block/stored_codes.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/cuda/batch_layout.hpp"
#include "libmx/codec/segment_kernel.hpp"

namespace mx::codec::cuda {
namespace {

std::size_t half(std::size_t count) { return (count + 1) / 2; }

struct bounds {
    std::uint64_t row, row_end, col, col_end;
};

// Of whole bytes: the columns of a rectangle of 4-bit codes are even in number.
bounds bounds_of(std::span<const placed_segment> segments, tensor::dtype type) {
    const placed_segment& first = segments.front();
    bounds b{first.row, first.row, first.col, first.col};
    for (const placed_segment& s : segments) {
        b.row = std::min(b.row, s.row);
        b.col = std::min(b.col, s.col);
        b.row_end = std::max(b.row_end, s.row + s.place.rows);
        b.col_end = std::max(b.col_end, s.col + s.place.cols);
    }
    if (tensor::row_of(type).bits < 8) {
        b.col -= b.col % 2;
        b.col_end += b.col_end % 2;
    }
    return b;
}

value_rectangle inside(const value_rectangle& values, const bounds& b) {
    return {values.values.from(b.row * values.values.stride + b.col), b.row_end - b.row,
            b.col_end - b.col};
}

std::size_t row_bytes(const value_rectangle& v) {
    return static_cast<std::size_t>(tensor::stored_bytes(v.values.type, v.cols));
}

// Calls row(data) for each row, once for all of them if they are stored without gaps.
template <typename Row>
void for_each_row(const value_rectangle& v, Row&& row) {
    const bool whole = v.values.stride == v.cols;
    const std::size_t bytes = row_bytes(v) * (whole ? static_cast<std::size_t>(v.rows) : 1);
    for (std::uint64_t r = 0; r < (whole ? 1 : v.rows); ++r) {
        row(std::span(v.values.from(r * v.values.stride).data, bytes));
    }
}

using base::cuda::device;
using base::cuda::held_memory;
using base::cuda::memory_kind;
using base::cuda::out_of_memory;

// The received results of a slice, until the next run.
struct piece {
    slice what;
    batch_layout layout;
    base::aligned_buffer<std::byte> back;
};

// Of a slice.
struct slot : base::cuda::lane {
    using base::cuda::lane::lane;
    piece* under_way = nullptr;
};

class device_quantizer final : public quantizer {
  public:
    device_quantizer(device& on, starter kernel, const slice_limits& limits)
        : device_(on), start_(kernel), limits_(limits), panel_limit_(limits.bytes / 2) {}

    bool reads(tensor::dtype type) const override {
        return is_stored(type) || block::stores_codes(type);
    }

    std::byte* reserve_values(std::size_t which, std::size_t bytes) override {
        held_memory& panel = panels_[which];
        if (bytes > panel_limit_ || instead_) {
            panel.release();
            return nullptr;
        }
        try {
            grow(panel, bytes, panel_limit_);
        } catch (const out_of_memory&) {
            return nullptr;
        }
        return panel.data();
    }

    void run(const value_rectangle& values, std::span<const placed_segment> segments,
             std::span<const recipe_request> recipes, const segment_visitor& visit) override {
        if (std::ranges::any_of(recipes, is_for_cpu)) {
            if (!by_cpu_) by_cpu_ = best_backend().make_quantizer();
            by_cpu_->steer(notices(), cancel());
            const bool areas = std::ranges::any_of(
                recipes, [](const recipe_request& r) { return r.params->outer_areas; });
            if (areas && notices() != nullptr) {
                notices()->once(
                    "outer scales",
                    fmt::format("backend {} quantizes the recipes of this run: the GPU has "
                                "no outer scales of rows, columns and tiles",
                                best_backend().name));
            }
            return by_cpu_->run(for_cpu(values), segments, recipes, visit);
        }
        stats_.assign(recipes.size(), {});
        const bool inputs =
            std::ranges::any_of(recipes, [](const recipe_request& r) { return r.inputs; });
        const stored_values shown = inputs ? for_cpu(values).values : values.values;
        for (std::size_t first = 0; first < segments.size();) {
            const std::size_t end = part_end(segments, recipes, first);
            const auto part = segments.subspan(first, end - first);
            run_part(values, part, recipes);
            if (instead_) {
                instead_->steer(notices(), cancel());
                return instead_->run(
                    for_cpu(values), segments.subspan(first), recipes,
                    [&](std::size_t s, auto results) { visit(first + s, results); });
            }
            for (std::size_t s = 0; s < part.size(); ++s) {
                results_.clear();
                for (std::size_t r = 0; r < recipes.size(); ++r) {
                    results_.push_back(result(s, r));
                    if (!recipes[r].inputs) continue;
                    const placed_segment& at = part[s];
                    pack_blocks(shown.from(at.row * shown.stride + at.col), at.place, laid_out_);
                    results_.back().of_blocks.inputs = laid_out_.x;
                }
                visit(first + s, results_);
            }
            first = end;
        }
    }

  private:
    // Kernels support the outer scale of a whole tensor only, and do not round the sums of single
    // blocks.
    static bool is_for_cpu(const recipe_request& r) {
        return r.params->outer_areas || r.wanted == detail::stats || r.wanted == detail::scales;
    }

    // The CPU reads no codes.
    value_rectangle for_cpu(const value_rectangle& v) {
        if (is_stored(v.values.type)) return v;
        const block::code_table& numbers = block::numbers_of(v.values.type);
        float* const x = numbers_.reserve(static_cast<std::size_t>(v.rows * v.cols));
        float* to = x;
        const bool packed = tensor::row_of(v.values.type).bits == 4;
        for_each_row(v, [&](std::span<const std::byte> row) {
            for (const std::byte codes : row) {
                const auto byte = std::to_integer<std::size_t>(codes);
                if (packed) {
                    *to++ = numbers[byte & 15];
                    *to++ = numbers[byte >> 4];
                } else {
                    *to++ = numbers[byte];
                }
            }
        });
        return {
            {tensor::dtype::f32, reinterpret_cast<const std::byte*>(x), v.cols}, v.rows, v.cols};
    }

    // Whether values are in memory that a device can copy from.
    bool is_pinned(const stored_values& v) const {
        return std::ranges::any_of(panels_, [&](const held_memory& m) {
            const std::less<> before;
            return !before(v.data, m.data()) && before(v.data, m.data() + m.size());
        });
    }

    static std::uint64_t kept_bytes(const segment_place& s, const recipe_request& r) {
        if (r.wanted == detail::none) return sizeof(segment_tally);
        block_results d;
        d.stride = block_stride(s.block_size());
        std::uint64_t bytes = 0;
        for_each_array(d, r, [&](const auto* array, std::size_t entries) {
            bytes += entries * sizeof *array;
        });
        return s.blocks() * bytes;
    }

    // The end of the part that begins with segment `first`; a single segment is never divided.
    std::size_t part_end(std::span<const placed_segment> segments,
                         std::span<const recipe_request> recipes, std::size_t first) const {
        std::uint64_t bytes = 0;
        for (std::size_t end = first; end < segments.size(); ++end) {
            for (const recipe_request& r : recipes) bytes += kept_bytes(segments[end].place, r);
            if (bytes > limits_.kept && end > first) return end;
        }
        return segments.size();
    }

    // Sets `instead_` if the device is out of memory.
    void run_part(const value_rectangle& values, std::span<const placed_segment> segments,
                  std::span<const recipe_request> recipes) {
        while (!instead_) {
            try {
                return run_slices(values, segments, recipes);
            } catch (const out_of_memory& short_of) {
                abandon();
                make_do(short_of);
            } catch (...) {
                abandon();
                throw;
            }
        }
    }

    // The last segment of a slice has the sums of all its segments.
    segment_result result(std::size_t segment, std::size_t recipe) {
        const place& at = places_[segment];
        piece& p = *pieces_[at.piece + recipe / at.recipes];
        const std::size_t in_slice = segment - p.what.segment;
        const device_result r =
            result_of(p.layout, in_slice, recipe - p.what.recipe, p.back.data());
        block::segment_stats& to = stats_[recipe];
        to.count = {};
        to.block = {};
        to.max_error = 0;
        to.counted_max = 0;
        add_counts(*r.tally, to);
        if (in_slice == 0) to.sum = {};
        if (in_slice + 1 == p.what.segments) {
            to.sum = *r.totals;
            block::each_exact_sum([](base::exact_sum& s) { s.settle(); }, to.sum);
        }
        return {&to, r.of_blocks};
    }

    // Where the results of a segment are: `recipes` recipes per piece, in consecutive pieces.
    struct place {
        std::size_t piece, recipes;
    };

    void run_slices(const value_rectangle& values, std::span<const placed_segment> segments,
                    std::span<const recipe_request> recipes) {
        places_.clear();
        used_ = 0;
        if (recipes.empty()) return;
        const slicer cuts(values, segments, recipes, limits_, is_pinned(values.values));
        while (places_.size() < segments.size()) {
            slice s = cuts.from(places_.size());
            places_.insert(places_.end(), s.segments, {used_, s.recipes});
            const slice_values part = cut_out(values, segments.subspan(s.segment, s.segments));
            for (const std::size_t together = s.recipes; s.recipe < recipes.size();
                 s.recipe += together) {
                s.recipes = std::min(together, recipes.size() - s.recipe);
                stop_if_cancelled();
                slot& next = slots_[used_ % slots_in_use_];
                finish(next);
                start(next, s, part, recipes.subspan(s.recipe, s.recipes));
            }
        }
        work_meanwhile();
        for (slot& s : slots_) finish(s);
    }

    piece& next_piece() {
        if (used_ == pieces_.size()) pieces_.push_back(std::make_unique<piece>());
        return *pieces_[used_++];
    }

    // Queues a slice.
    void start(slot& to, const slice& what, const slice_values& part,
               std::span<const recipe_request> recipes) {
        piece& p = next_piece();
        p.what = what;
        p.layout = lay_out(part.values, part.segments, recipes);
        const batch_layout& l = p.layout;  // its pieces end at offsets aligned for any type
        asked_ = {l.there_bytes + l.back_bytes + l.scratch_bytes,
                  what.segments == 1 && what.recipes == 1};
        const std::size_t staged = is_pinned(part.values.values) ? 0 : l.value_bytes;
        grow(to.pinned, l.there_bytes + l.back_bytes + staged, limits_.bytes / 2);
        grow(to.card, asked_.bytes, limits_.bytes);
        std::byte* const there = to.pinned.data();
        std::byte* const device_there = to.card.data();
        std::byte* const device_back = device_there + l.there_bytes;
        const launch kernel = fill(l, part.values, part.segments, recipes, there, device_there,
                                   device_back, device_back + l.back_bytes);
        to.under_way = &p;
        base::cuda::stream& work = to.work();
        work.copy_there(device_there, there, l.sent_bytes);
        copy_values(part.values, device_back + l.back_bytes + l.values,
                    staged != 0 ? there + l.there_bytes + l.back_bytes : nullptr, work);
        start_(kernel, work);
        work.copy_back(there + l.there_bytes, device_back, l.back_bytes);
    }

    // Queues the copy of values to the device, by way of `staging` unless it is null.
    static void copy_values(const value_rectangle& v, std::byte* device, std::byte* staging,
                            base::cuda::stream& on) {
        const std::size_t row = row_bytes(v);
        const auto rows = static_cast<std::size_t>(v.rows);
        if (staging != nullptr) {
            std::byte* to = staging;
            for_each_row(v, [&](std::span<const std::byte> stored) {
                to = std::ranges::copy(stored, to).out;
            });
            on.copy_there(device, staging, rows * row);
        } else if (v.values.stride == v.cols) {
            on.copy_there(device, v.values.data, rows * row);
        } else {
            const auto pitch =
                static_cast<std::size_t>(v.values.from(v.values.stride).data - v.values.data);
            on.copy_rows_there(device, v.values.data, row, rows, pitch);
        }
    }

    // Waits for the slot's slice and stores its results, which frees the slot.
    void finish(slot& s) {
        if (s.under_way == nullptr) return;
        s.work().wait();
        piece& p = *s.under_way;
        s.under_way = nullptr;
        const std::size_t bytes = p.layout.back_bytes;
        std::memcpy(p.back.reserve(bytes), s.pinned.data() + p.layout.there_bytes, bytes);
    }

    // Slices differ in size: sizes are powers of two, so that reallocations are rare.
    static void grow(held_memory& m, std::size_t bytes, std::size_t limit) {
        if (bytes <= m.size()) return;
        m.reserve(std::max(bytes, std::min(limit, std::bit_ceil(bytes))));
    }

    void abandon() noexcept {
        for (slot& s : slots_) {
            s.under_way = nullptr;
            s.release();
        }
    }

    // The next attempt requests half the memory, then uses one slot less, then the CPU.
    void make_do(const out_of_memory& short_of) {
        device_.trim();
        limits_.bytes = std::min(limits_.bytes, asked_.bytes) / 2;
        if (!asked_.least) return;
        if (slots_in_use_ > 1) {
            slots_in_use_ = 1;
            return;
        }
        if (notices() == nullptr) throw short_of;
        const backend& other = best_backend();
        notices()->once("quantizing", base::cuda::went_elsewhere(short_of, other.name));
        instead_ = other.make_quantizer();
    }

    device& device_;
    starter start_;
    slice_limits limits_;
    std::size_t panel_limit_;
    // Destroyed after the slots, whose streams copy from them.
    std::array<held_memory, 2> panels_{held_memory(device_, memory_kind::pinned),
                                       held_memory(device_, memory_kind::pinned)};
    std::array<slot, 2> slots_{slot(device_), slot(device_)};
    std::size_t slots_in_use_ = slots_.size();
    std::vector<place> places_;                   // by segment
    std::vector<std::unique_ptr<piece>> pieces_;  // the first used_ of them are in use
    std::size_t used_ = 0;
    // The slice that was started last: its bytes on the device, and whether it cannot be divided.
    struct {
        std::size_t bytes = 0;
        bool least = false;
    } asked_;
    std::vector<segment_result> results_;      // of a segment
    std::vector<block::segment_stats> stats_;  // referred to by results_
    block_run laid_out_;
    base::aligned_buffer<float> numbers_;  // see for_cpu
    std::unique_ptr<quantizer> instead_;   // set once the device was out of memory
    std::unique_ptr<quantizer> by_cpu_;    // see is_for_cpu
};

}  // namespace

slice_values cut_out(const value_rectangle& values, std::span<const placed_segment> segments) {
    const bounds b = bounds_of(segments, values.values.type);
    slice_values out{inside(values, b), {segments.begin(), segments.end()}};
    for (placed_segment& s : out.segments) {
        s.row -= b.row;
        s.col -= b.col;
    }
    return out;
}

slice slicer::from(std::size_t first) const {
    slice s{first, row_end(first) - first, 0, recipes_.size()};
    const bool whole_row = first == 0 || segments_[first - 1].row != segments_[first].row;
    if (whole_row && fits(s)) {
        // As many rows as keep within both limits if all are like the first; the last rows of a
        // matrix may have fewer elements.
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a slice has elements
        const std::uint64_t whole_rows = limits_.elements / elements_of(s);
        auto rows = static_cast<std::size_t>(
            std::min<std::uint64_t>(limits_.bytes / bytes_of(s), whole_rows));
        for (;; rows = half(rows)) {
            slice all = s;
            for (std::size_t r = 1; r < rows && first + all.segments < segments_.size(); ++r) {
                all.segments = row_end(first + all.segments) - first;
            }
            if (rows == 1 || fits(all)) return all;
        }
    }
    while (s.segments > 1 && !fits(s)) s.segments = half(s.segments);
    while (s.recipes > 1 && bytes_of(s) > limits_.bytes) s.recipes = half(s.recipes);
    return s;
}

bool slicer::fits(const slice& s) const {
    return elements_of(s) <= limits_.elements && bytes_of(s) <= limits_.bytes;
}

std::uint64_t slicer::elements_of(const slice& s) const {
    const bounds b = bounds_of(segments_.subspan(s.segment, s.segments), values_.values.type);
    return (b.row_end - b.row) * (b.col_end - b.col);
}

std::size_t slicer::bytes_of(const slice& s) const {
    const auto segments = segments_.subspan(s.segment, s.segments);
    const batch_layout l = lay_out(inside(values_, bounds_of(segments, values_.values.type)),
                                   segments, recipes_.subspan(s.recipe, s.recipes));
    const std::size_t pinned = l.there_bytes + l.back_bytes + (pinned_values_ ? 0 : l.value_bytes);
    return std::max(l.there_bytes + l.back_bytes + l.scratch_bytes, 2 * pinned);
}

std::size_t slicer::row_end(std::size_t first) const {
    std::size_t end = first + 1;
    while (end < segments_.size() && segments_[end].row == segments_[first].row) ++end;
    return end;
}

std::unique_ptr<quantizer> make_device_quantizer(device& on, starter start,
                                                 const slice_limits& limits) {
    return std::make_unique<device_quantizer>(on, start, limits);
}

}  // namespace mx::codec::cuda
