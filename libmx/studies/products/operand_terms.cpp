// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/operand_terms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/format/element_formats.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::products {
namespace {

// Multiplications of an operand with a scale that float32 may round: with an outer scale the
// block's scale by it, and the element by both; values without codes were rounded once here and
// once by the kernel.
int scalings_of(const quantized_operand& q) {
    if (q.coded.format == nullptr) return q.recipe.plain == nullptr ? 2 : 0;
    return q.coded.tensor_scale != 1.0f || !q.coded.row_scales.empty() ? 2 : 0;
}

// The largest significand of a code over that of the least one.
double integer_range(const gemm::operand& x) {
    const format::element_format* f = format::find_element_format(x.format->name);
    return f == nullptr ? std::numeric_limits<double>::infinity()
                        : std::ldexp(f->max_significand(), f->emax() - x.format->least_exponent());
}

// Roundings where the scales multiply the sum of a block: none if they are powers of two, or if the
// sum of elements and both scales fit a float32's digits together.
int block_scalings(const gemm::operand& a, const gemm::operand& b) {
    if (((a.scaling | b.scaling) & gemm::scales_ue4m3_16) == 0) return 0;
    constexpr double scale_significand = 15;
    const auto block = static_cast<double>(std::max(a.scale_block, b.scale_block));
    const double most =
        block * integer_range(a) * integer_range(b) * scale_significand * scale_significand;
    return most < 0x1p24 ? 0 : 2;
}

}  // namespace

std::vector<double> exact_values(const quantized_operand& q) {
    if (q.coded.format != nullptr) return gemm::exact_values(q.coded);
    return {q.values.begin(), q.values.end()};
}

operand_terms::operand_terms(const matrix& m, const matrix& n, const check_request& request,
                             const engine::run_control& control)
    : rotate(common_rotation(request.recipe_a, request.recipe_b)),
      a(quantize_operand(m, request.over_a, request.recipe_a, rotate, control)),
      b(quantize_operand(n, request.over_b, request.recipe_b, rotate, control)),
      x(exact_values(a)),
      y(exact_values(b)) {
    how.faithful = request.of.faithful;
    how.scalings = scalings_of(a) + scalings_of(b);
    if (a.coded.format != nullptr && b.coded.format != nullptr) {
        how.scalings += block_scalings(a.coded, b.coded);
    }
}

void operand_terms::terms(const double* x_row, std::size_t row, std::size_t col,
                          std::span<double> to) const {
    const double outer = static_cast<double>(a.coded.outer_scale(row)) *
                         static_cast<double>(b.coded.outer_scale(col));
    const double* y_row = y.data() + col * b.depth;
    for (std::size_t k = 0; k < a.depth; ++k) to[k] = x_row[k] * y_row[k] * outer;
}

}  // namespace mx::products
