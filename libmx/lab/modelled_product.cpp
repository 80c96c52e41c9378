// SPDX-License-Identifier: Apache-2.0
// Matrix products summed by an accumulator model, computed as in mx layer.
#include <algorithm>
#include <vector>

#include "libmx/lab/operand.hpp"
#include "libmx/studies/products/operand_forms.hpp"
#include "libmx/studies/products/products.hpp"
#include "libmx/studies/products/quantized_operand.hpp"

namespace mx::lab {
namespace {

products::quantized_operand operand_of(const operand_rule& rule, const matrix_view& m, axis over,
                                       const transform::rotation& rotate,
                                       const engine::run_control& control) {
    products::matrix copy;
    copy.rows = m.rows;
    copy.cols = m.cols;
    copy.shape = {m.rows, m.cols};
    copy.values.assign(m.data, m.data + m.rows * m.cols);
    const products::operand_recipe plain{{}, &products::plain_formats().front(), false};
    return products::quantize_operand(
        copy, over == axis::last ? products::reduction::last : products::reduction::first,
        rule.recipe.value_or(plain), rotate, control);
}

}  // namespace

void multiply_by_model(const precision& p, stage which, const matrix_view& a, axis over_a,
                       const matrix_view& b, axis over_b, int threads, float* c) {
    engine::run_control control;
    control.threads = threads;
    const auto& rules = p.operands[static_cast<std::size_t>(which)];
    const transform::rotation& rotate = p.rotations[static_cast<std::size_t>(which)];
    const products::form_pair forms =
        products::forms_for(*p.accumulate, operand_of(rules[0], a, over_a, rotate, control),
                            operand_of(rules[1], b, over_b, rotate, control));
    products::product_runner run(control, {}, 0);
    const std::vector<float> values =
        run.multiply(forms.first.operand, forms.second.operand, {}, *p.accumulate, {});
    std::ranges::copy(values, c);
}

}  // namespace mx::lab
