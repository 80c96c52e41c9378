// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/multiply_checks.hpp"

#include <fmt/format.h>

#include <limits>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::gemm {
namespace {

[[noreturn]] void fail(const std::string& message) {
    throw base::error(base::error_kind::usage, message);
}

// rows * cols, where the product of two sizes in memory may not wrap.
std::size_t area(std::size_t rows, std::size_t cols) {
    if (cols != 0 && rows > std::numeric_limits<std::size_t>::max() / cols) {
        fail(fmt::format("a matrix of {} x {} does not fit memory", rows, cols));
    }
    return rows * cols;
}

void require_shape(const operand& x, std::string_view name) {
    if (x.format == nullptr) fail(fmt::format("operand {} has no format", name));
    if (x.rows == 0 || x.depth == 0) {
        fail(fmt::format("operand {} is {} x {}; give at least one row and one element of k", name,
                         x.rows, x.depth));
    }
    if (x.codes.size() != area(x.rows, x.depth)) {
        fail(fmt::format("operand {} is {} x {} but has {} codes", name, x.rows, x.depth,
                         x.codes.size()));
    }
    if (x.scaling == 0) return;
    const operand_scale* scale = nullptr;
    for (const operand_scale& s : operand_scales) {
        if (s.bit == x.scaling) scale = &s;
    }
    if (scale == nullptr || scale->block != x.scale_block) {
        fail(fmt::format("operand {} has blocks of {}, which is not what its scales are of", name,
                         x.scale_block));
    }
    if (x.format->member == takes_f32) {
        fail(fmt::format("operand {} is float32 with block scales; dequantize it first", name));
    }
    const std::size_t blocks = x.depth / x.scale_block + (x.depth % x.scale_block != 0 ? 1 : 0);
    if (x.scales.size() != area(x.rows, blocks)) {
        fail(fmt::format("operand {} is {} x {} in blocks of {} but has {} scales", name, x.rows,
                         x.depth, x.scale_block, x.scales.size()));
    }
}

std::string in_words(const operand& x) {
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

// One that takes them: of the same chip if there is one, else of another, else software.
const accumulator* alternative(const accumulator& m, const operand& a, const operand& b) {
    const accumulator* found = nullptr;
    for (const accumulator& row : accumulators()) {
        if (row.known_from == evidence::definition || !takes_both(row, a, b)) continue;
        if (chip_of(row.name) == chip_of(m.name)) return &row;
        if (found == nullptr) found = &row;
    }
    return found != nullptr ? found : find_accumulator("fp32.fma");
}

}  // namespace

void require_fit(const operand& a, const operand& b, std::span<const std::uint32_t> c,
                 const accumulator& m, const arrangement& how) {
    validate(m);
    require_shape(a, "A");
    require_shape(b, "B");
    if (a.depth != b.depth) {
        fail(fmt::format("A has {} elements along k and B has {}", a.depth, b.depth));
    }
    const std::size_t outputs = area(a.rows, b.rows);
    if (!c.empty() && c.size() != outputs) {
        fail(fmt::format("C has {} elements; {} x {} are called for", c.size(), a.rows, b.rows));
    }
    if (how.slices == 0) fail("slices=0: give 1 for none");
    if (takes_both(m, a, b)) return;
    fail(fmt::format("accumulator '{}' does not take {} x {}; {} does", m.name, in_words(a),
                     in_words(b), alternative(m, a, b)->name));
}

}  // namespace mx::gemm
