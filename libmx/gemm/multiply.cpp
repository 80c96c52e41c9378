// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/multiply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <string>

#include "libmx/base/bits.hpp"
#include "libmx/base/cuda/device.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/terms.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {
namespace {

// rows * cols; throws if the product overflows.
std::size_t area(std::size_t rows, std::size_t cols) {
    if (cols != 0 && rows > std::numeric_limits<std::size_t>::max() / cols) {
        base::refuse("a matrix of {} x {} does not fit memory", rows, cols);
    }
    return rows * cols;
}

void require_shape(const operand& x, std::string_view name) {
    if (x.format == nullptr) base::refuse("operand {} has no format", name);
    if (x.rows == 0 || x.depth == 0) {
        base::refuse("operand {} is {} x {}; give at least one row and one element of k", name,
                     x.rows, x.depth);
    }
    if (x.codes.size() != area(x.rows, x.depth)) {
        base::refuse("operand {} is {} x {} but has {} codes", name, x.rows, x.depth,
                     x.codes.size());
    }
    if (!x.row_scales.empty() && x.row_scales.size() != x.rows) {
        base::refuse("operand {} has {} rows but {} row scales", name, x.rows, x.row_scales.size());
    }
    if (x.scaling == 0) return;
    const operand_scale* scale = nullptr;
    for (const operand_scale& s : operand_scales) {
        if (s.bit == x.scaling) scale = &s;
    }
    if (scale == nullptr || scale->block != x.scale_block) {
        base::refuse("operand {} has blocks of {}, which is not what its scales are of", name,
                     x.scale_block);
    }
    if (x.format->member == takes_f32) {
        base::refuse("operand {} is float32 with block scales; dequantize it first", name);
    }
    const std::size_t blocks = x.depth / x.scale_block + (x.depth % x.scale_block != 0 ? 1 : 0);
    if (x.scales.size() != area(x.rows, blocks)) {
        base::refuse("operand {} is {} x {} in blocks of {} but has {} scales", name, x.rows,
                     x.depth, x.scale_block, x.scales.size());
    }
}

std::string operand_text(const operand& x) {
    for (const operand_scale& s : operand_scales) {
        if (s.bit == x.scaling) {
            return fmt::format("{} under {} per {}", x.format->name, s.format, s.block);
        }
    }
    return std::string(x.format->name);
}

std::string_view chip_of(std::string_view name) { return name.substr(0, name.find('.')); }

bool takes_both(const accumulator& m, const operand& a, const operand& b) {
    return takes(m, *a.format, *b.format, a.scaling) && takes(m, *a.format, *b.format, b.scaling);
}

// A model that takes the operands: of the same chip if there is one, else of another, else
// software.
const accumulator* alternative(const accumulator& m, const operand& a, const operand& b) {
    const accumulator* found = nullptr;
    for (const accumulator& row : accumulators()) {
        if (row.known_from == evidence::definition || !takes_both(row, a, b)) continue;
        if (chip_of(row.name) == chip_of(m.name)) return &row;
        if (found == nullptr) found = &row;
    }
    return found != nullptr ? found : find_accumulator("fp32.fma");
}

// The arrangement of the steps of every output.
struct plan {
    std::size_t steps = 0;     // of all of K
    std::size_t slice = 0;     // steps per slice
    std::size_t promoted = 0;  // steps until the sum is added to the float32 sum; 0: never
    bool f16_sum = false;      // round that sum to f16 every time
    bool descending = false;
    bool c_first = false;  // C is the first accumulator
    bool f16 = false;
};

plan plan_of(const operand& a, std::span<const std::uint32_t> c, const accumulator& m,
             const arrangement& how) {
    const std::size_t length = step_length(m);
    const auto at_once = static_cast<std::size_t>(steps_at_once(m.enters));
    plan p;
    p.steps = a.depth / length + (a.depth % length != 0 ? 1 : 0);
    // The order does not affect an exact sum.
    const bool exact = m.how == algorithm::exact;
    const std::size_t slices = exact ? 1 : std::min(how.slices, p.steps);
    p.slice = p.steps / slices + (p.steps % slices != 0 ? 1 : 0);
    p.slice = (p.slice + at_once - 1) / at_once * at_once;
    p.promoted = static_cast<std::size_t>(m.promote_every) / length;
    if (m.c == entry::afterwards) p.promoted = at_once;
    p.f16_sum = m.c == entry::afterwards && gives_f16(m);
    p.descending = how.order == k_order::descending;
    p.c_first = how.accumulate_c && !c.empty() && m.c != entry::ignored;
    p.f16 = gives_f16(m);
    return p;
}

float as_float(const plan& p, std::uint32_t bits) {
    return p.f16 ? base::float_from_half(static_cast<std::uint16_t>(bits))
                 : base::float_from_bits(bits);
}

std::uint32_t as_bits(const plan& p, float x) {
    return p.f16 ? f16_from_f32(base::bits_of(x)) : base::bits_of(x);
}

// Processes steps from `begin` (the initial accumulators); leaves the sums in `acc`.
void walk_promoting(const engine& e, const plan& p, const tile& where, const step_range& range,
                    std::vector<std::uint32_t>& acc) {
    if (p.promoted == 0) return e.walk(where, range, acc.data());
    std::vector<float> sum(acc.size());
    for (std::size_t i = 0; i < acc.size(); ++i) sum[i] = as_float(p, acc[i]);
    for (std::size_t done = 0; done < range.count;) {
        const std::size_t count = std::min(p.promoted, range.count - done);
        const std::size_t first =
            p.descending ? range.first + range.count - done - count : range.first + done;
        std::ranges::fill(acc, 0u);
        e.walk(where, {first, count, p.descending}, acc.data());
        for (std::size_t i = 0; i < acc.size(); ++i) {
            sum[i] += as_float(p, acc[i]);
            // Float32 has more than twice as many bits as f16, so double rounding has no effect.
            if (p.f16_sum) sum[i] = as_float(p, as_bits(p, sum[i]));
        }
        done += count;
    }
    for (std::size_t i = 0; i < acc.size(); ++i) acc[i] = as_bits(p, sum[i]);
}

// The sums of a tile before alpha and beta.
std::vector<std::uint32_t> sums_of(const engine& e, const plan& p, const tile& where,
                                   std::span<const std::uint32_t> c, std::size_t columns) {
    std::vector<std::uint32_t> acc(where.rows * where.cols);
    if (p.c_first) {
        for (std::size_t r = 0; r < where.rows; ++r) {
            for (std::size_t i = 0; i < where.cols; ++i) {
                acc[r * where.cols + i] = c[(where.row + r) * columns + where.col + i];
            }
        }
    }
    walk_promoting(e, p, where, {0, std::min(p.slice, p.steps), p.descending}, acc);
    if (p.slice >= p.steps) return acc;
    std::vector<float> sum(acc.size());
    for (std::size_t i = 0; i < acc.size(); ++i) sum[i] = as_float(p, acc[i]);
    for (std::size_t first = p.slice; first < p.steps; first += p.slice) {
        std::ranges::fill(acc, 0u);
        const std::size_t count = std::min(p.slice, p.steps - first);
        walk_promoting(e, p, where, {first, count, p.descending}, acc);
        for (std::size_t i = 0; i < acc.size(); ++i) sum[i] += as_float(p, acc[i]);
    }
    for (std::size_t i = 0; i < acc.size(); ++i) acc[i] = as_bits(p, sum[i]);
    return acc;
}

// alpha * sum + beta * C as in CUTLASS's linear combination: beta * C is rounded, and alpha * sum
// added with a fused multiply-add. Without beta, C is not read.
struct epilogue {
    float alpha = 1.0F;
    float beta = 0.0F;

    std::uint32_t operator()(const plan& p, std::uint32_t sum, std::uint32_t c) const {
        const bool with_c = beta != 0.0F;
        std::uint32_t result = sum;
        if (with_c) {
            result = as_bits(p, std::fma(alpha, as_float(p, sum), beta * as_float(p, c)));
        } else if (alpha != 1.0F) {
            result = as_bits(p, alpha * as_float(p, sum));
        }
        const std::uint32_t infinity = p.f16 ? 0x7c00u : base::f32_infinity;
        const std::uint32_t magnitude = p.f16 ? 0x7fffu : base::f32_magnitude_mask;
        if ((result & magnitude) <= infinity) return result;
        return p.f16 ? f16_canonical_nan : f32_canonical_nan;
    }
};

// Reorders operands to the order in which steps take them.
std::vector<std::uint32_t> product_by(const backend& by, const operand& a, const operand& b,
                                      std::span<const std::uint32_t> c, const accumulator& model,
                                      const arrangement& how, const multiply_control& control) {
    const std::unique_ptr<engine> e = by.make(a, b, model, control.threads);
    const plan p = plan_of(a, c, model, how);
    const float beta = c.empty() || how.accumulate_c ? 0.0F : how.beta;
    std::vector<std::uint32_t> d(a.rows * b.rows);
    const std::size_t down = (a.rows + e->tile_rows() - 1) / e->tile_rows();
    const std::size_t across = (b.rows + e->tile_cols() - 1) / e->tile_cols();
    std::mutex report;
    std::uint64_t done = 0;
    base::parallel_for(
        down * across, control.threads, control.cancel, [&](std::uint64_t index, int) {
            tile where;
            where.row = index / across * e->tile_rows();
            where.col = index % across * e->tile_cols();
            where.rows = std::min(e->tile_rows(), a.rows - where.row);
            where.cols = std::min(e->tile_cols(), b.rows - where.col);
            const std::vector<std::uint32_t> sums = sums_of(*e, p, where, c, b.rows);
            for (std::size_t r = 0; r < where.rows; ++r) {
                for (std::size_t i = 0; i < where.cols; ++i) {
                    const std::size_t row = where.row + r, col = where.col + i;
                    const std::size_t at = row * b.rows + col;
                    const epilogue finish{how.alpha * (a.outer_scale(row) * b.outer_scale(col)),
                                          beta};
                    d[at] = finish(p, sums[r * where.cols + i], c.empty() ? 0u : c[at]);
                }
            }
            if (!control.on_progress) return;
            const std::lock_guard<std::mutex> lock(report);
            control.on_progress(++done, down * across);
        });
    return d;
}

// Falls back to the best CPU backend if the requested one lacks memory.
std::vector<std::uint32_t> product_somewhere(const backend& by, const operand& a, const operand& b,
                                             std::span<const std::uint32_t> c,
                                             const accumulator& model, const arrangement& how,
                                             const multiply_control& control) {
    try {
        return product_by(by, a, b, c, model, how, control);
    } catch (const base::cuda::out_of_memory& short_of) {
        if (control.notices == nullptr) throw;
        const backend& other = best_backend();
        control.notices->once("multiplying", base::cuda::went_elsewhere(short_of, other.name));
        return product_by(other, a, b, c, model, how, control);
    }
}

// Throws base::error (usage) if the operands have wrong shapes, do not match each other or `c`, if
// the model does not take them (with the name of one that does), or if the arrangement is not
// possible.
// the model does not take them (naming one that does), or when the arrangement makes no sense.
void require_fit(const operand& a, const operand& b, std::span<const std::uint32_t> c,
                 const accumulator& m, const arrangement& how) {
    validate(m);
    require_shape(a, "A");
    require_shape(b, "B");
    if (a.depth != b.depth) {
        base::refuse("A has {} elements along k and B has {}", a.depth, b.depth);
    }
    const std::size_t outputs = area(a.rows, b.rows);
    if (!c.empty() && c.size() != outputs) {
        base::refuse("C has {} elements; {} x {} are required", c.size(), a.rows, b.rows);
    }
    if (how.slices == 0) base::refuse("slices=0: give 1 for none");
    if (takes_both(m, a, b)) return;
    base::refuse("accumulator '{}' does not support {} x {}; {} does", m.name, operand_text(a),
                 operand_text(b), alternative(m, a, b)->name);
}

// fp8 on chips without an fp8 instruction (intake::halves): every 32-bit register of four codes is
// widened to f16 in its lower and its upper half, and an instruction of 2 L products consists of
// two f16 steps of L. Converts `x` (without scales, all values representable in f16) to f16 in the
// order of steps of `length` products, an even number: of 2 length consecutive elements first those
// with k mod 4 = 0 and 1, then the others. k is padded with zeros to whole instructions.
operand in_halves(const operand& x, std::size_t length) {
    const std::vector<float> values = dequantized(x, intake::float32);
    const std::size_t at_once = 2 * length;
    operand h;
    h.rows = x.rows;
    h.depth = (x.depth + at_once - 1) / at_once * at_once;
    h.format = find_operand_format("f16");
    h.tensor_scale = x.tensor_scale;
    h.row_scales = x.row_scales;
    h.codes.resize(h.rows * h.depth);
    for (std::size_t r = 0; r < x.rows; ++r) {
        for (std::size_t k = 0; k < x.depth; ++k) {
            const std::size_t within = k % at_once;
            const std::size_t place = k - within + within % 4 / 2 * length + within / 4 * 2 + k % 2;
            h.codes[r * h.depth + place] = f16_from_f32(base::bits_of(values[r * x.depth + k]));
        }
    }
    return h;
}

}  // namespace

std::vector<std::uint32_t> multiply(const operand& a, const operand& b,
                                    std::span<const std::uint32_t> c, const accumulator& model,
                                    const arrangement& how, const multiply_control& control) {
    return multiply_by(backend_named(control.backend), a, b, c, model, how, control);
}

std::vector<std::uint32_t> multiply_by(const backend& by, const operand& a, const operand& b,
                                       std::span<const std::uint32_t> c, const accumulator& model,
                                       const arrangement& how, const multiply_control& control) {
    require_fit(a, b, c, model, how);
    if (model.enters != intake::halves) return product_somewhere(by, a, b, c, model, how, control);
    const std::size_t length = step_length(model);
    return product_somewhere(by, in_halves(a, length), in_halves(b, length), c, model, how,
                             control);
}

}  // namespace mx::gemm
