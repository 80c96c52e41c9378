// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/simd/vector_backend.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/gemm/convert_sum.hpp"

namespace mx::gemm::simd {
namespace {

// Rows that go through a group of columns together: their accumulators, what they read of a step
// and what the columns read of it fit the nearest cache.
constexpr std::size_t tile_rows = 16;
// Elements along k that are packed at a time, about, and bytes of packed columns.
constexpr std::size_t packed_depth = 4096;
constexpr std::size_t packed_bytes = std::size_t{16} << 20;

constexpr std::size_t group_length = 16;

// Products of two elements are exact in float32, and so is every power of two they are scaled by.
bool fits_narrow(const operand_format& f) {
    return f.exponent_bits <= 5 && f.mantissa_bits <= 10;
}

panel_shape shape_of(const stretch& s) {
    panel_shape shape;
    shape.length = static_cast<std::size_t>(s.model->fused_length);
    shape.part = shape.length;
    if (s.model->how == algorithm::grouped) {
        shape.values = panel_values::integers;
        shape.part = group_length;
    } else if (!fits_narrow(*s.a->format) || !fits_narrow(*s.b->format) ||
               s.model->fraction_bits > 25) {
        shape.values = panel_values::wide;
    }
    return shape;
}

std::size_t bytes_of(const panel_shape& shape) {
    switch (shape.values) {
        case panel_values::narrow:
            return sizeof(float) + sizeof(std::int16_t);
        case panel_values::wide:
            return sizeof(double) + sizeof(std::int16_t);
        case panel_values::integers:
            return sizeof(std::int16_t) + 1;
    }
    return 0;
}

// The f16 bits of a value that f16 has.
std::uint32_t half_bits(float x) {
    if (std::isinf(x)) return infinity_bits(target_of(conversion::rne_fp16), x < 0);
    return base::half_saturated(x);
}

float value_of(conversion c, std::uint32_t bits) {
    if (!gives_f16(c)) return base::float_from_bits(bits);
    return base::float_from_half(static_cast<std::uint16_t>(bits));
}
std::uint32_t bits_of(conversion c, float x) {
    if (std::isnan(x)) return canonical_nan(c);
    return gives_f16(c) ? half_bits(x) : base::bits_of(x);
}

// What a thread keeps between its tasks.
struct workspace {
    operand_panel rows;
    float c[tile_rows * panel_lanes];
};

class walker {
  public:
    walker(const kernels& k, const stretch& s, std::span<std::uint32_t> c)
        : s_(s), c_(c), shape_(shape_of(s)) {
        run_ = shape_.values == panel_values::integers ? k.grouped
               : shape_.values == panel_values::wide   ? k.fused_wide
                                                       : k.fused_narrow;
        const std::size_t team = static_cast<std::size_t>(base::thread_count(s.threads));
        for (std::size_t i = 0; i < team; ++i) own_.push_back(std::make_unique<workspace>());
    }

    void run() {
        const std::size_t at_once = std::max<std::size_t>(1, packed_depth / shape_.length);
        for (std::size_t done = 0; done < s_.steps; done += at_once) {
            steps_ = std::min(at_once, s_.steps - done);
            first_step_ =
                s_.first_step + (s_.descending ? s_.steps - done - steps_ : done);
            all_columns();
        }
    }

  private:
    void all_columns() {
        const std::size_t group_bytes = steps_ * shape_.length * panel_lanes * bytes_of(shape_);
        const std::size_t columns =
            panel_lanes * std::max<std::size_t>(1, packed_bytes / group_bytes);
        for (std::size_t first = 0; first < s_.b->rows; first += columns) {
            first_column_ = first;
            columns_.begin(*s_.b, shape_, first, std::min(columns, s_.b->rows - first), first_step_,
                           steps_);
            base::parallel_for(columns_.groups(), s_.threads, s_.cancel,
                               [&](std::uint64_t g, int) { columns_.pack_group(g); });
            all_rows();
        }
    }

    void all_rows() {
        const std::size_t blocks = (s_.a->rows + tile_rows - 1) / tile_rows;
        // Few rows: the columns are divided among the threads as well.
        const std::size_t wanted = 4 * own_.size();
        const std::size_t spans =
            blocks >= wanted ? 1 : std::min(columns_.groups(), (wanted + blocks - 1) / blocks);
        base::parallel_for(blocks * spans, s_.threads, s_.cancel, [&](std::uint64_t i, int thread) {
            const std::size_t span = i % spans;
            const std::size_t groups = columns_.groups();
            one_block(i / spans * tile_rows, groups * span / spans, groups * (span + 1) / spans,
                      *own_[static_cast<std::size_t>(thread)]);
        });
    }

    void one_block(std::size_t row, std::size_t first_group, std::size_t last_group,
                   workspace& own) {
        panel_shape shape = shape_;
        shape.lanes = 1;
        const std::size_t rows = std::min(tile_rows, s_.a->rows - row);
        own.rows.begin(*s_.a, shape, row, rows, first_step_, steps_);
        for (std::size_t r = 0; r < rows; ++r) own.rows.pack_group(r);
        std::size_t outputs = 0;
        for (std::size_t g = first_group; g < last_group; ++g) {
            const std::size_t column = first_column_ + g * panel_lanes;
            const std::size_t columns = std::min(panel_lanes, s_.b->rows - column);
            std::fill_n(own.c, rows * panel_lanes, 0.0F);
            const conversion convert = s_.model->convert;
            for (std::size_t r = 0; r < rows; ++r) {
                const std::uint32_t* const from = &c_[(row + r) * s_.b->rows + column];
                for (std::size_t i = 0; i < columns; ++i) {
                    own.c[r * panel_lanes + i] = value_of(convert, from[i]);
                }
            }
            run_({s_.model, &own.rows, &columns_, rows, g, s_.descending, own.c});
            for (std::size_t r = 0; r < rows; ++r) {
                std::uint32_t* const to = &c_[(row + r) * s_.b->rows + column];
                for (std::size_t i = 0; i < columns; ++i) {
                    to[i] = bits_of(convert, own.c[r * panel_lanes + i]);
                }
            }
            outputs += rows * columns;
        }
        if (!s_.on_progress) return;
        const std::lock_guard lock(progress_);
        done_ += outputs * steps_;
        s_.on_progress(done_);
    }

    const stretch& s_;
    std::span<std::uint32_t> c_;
    panel_shape shape_;
    void (*run_)(const tile&);
    std::vector<std::unique_ptr<workspace>> own_;
    operand_panel columns_;
    std::size_t first_step_ = 0, steps_ = 0, first_column_ = 0;
    std::mutex progress_;
    std::uint64_t done_ = 0;
};

}  // namespace

bool takes(const accumulator& m, const operand& a, const operand& b) {
    const bool to_float = m.convert == conversion::rz_fp32 || m.convert == conversion::rz_e8m13;
    const bool converts = to_float || m.convert == conversion::rne_fp16;
    // What keeps every sum and every power of two inside float64.
    const bool in_range = m.fraction_bits >= 0 && m.fraction_bits <= 40 && m.fused_length >= 1 &&
                          m.fused_length <= 1024 && m.exponent_floor >= -400 &&
                          m.exponent_floor <= 400;
    if (!converts || !in_range || m.zero != zero_sign::plus ||
        m.subnormals != subnormal_alignment::least_exponent) {
        return false;
    }
    if (m.how == algorithm::grouped) {
        const auto fits = [](const operand& o) {
            return o.format->member == takes_fp4 && o.scale_block % group_length == 0;
        };
        return m.group_length == group_length && m.fused_length % group_length == 0 && fits(a) &&
               fits(b);
    }
    const auto fits = [&](const operand& o) {
        const auto length = static_cast<std::size_t>(m.fused_length);
        return o.scaling != scales_ue4m3_16 && o.scale_block % length == 0;
    };
    return m.how == algorithm::fused && fits(a) && fits(b);
}

void advance(const kernels& k, const stretch& s, std::span<std::uint32_t> c) {
    if (s.steps == 0 || c.empty()) return;
    walker(k, s, c).run();
}

}  // namespace mx::gemm::simd
