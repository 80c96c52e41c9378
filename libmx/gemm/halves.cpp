// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/halves.hpp"

#include "libmx/base/bits.hpp"
#include "libmx/gemm/convert_sum.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm {

operand in_halves(const operand& x, std::size_t length) {
    const std::vector<float> values = dequantized(x, intake::float32);
    const std::size_t at_once = 2 * length;
    operand h;
    h.rows = x.rows;
    h.depth = (x.depth + at_once - 1) / at_once * at_once;
    h.format = find_operand_format("f16");
    h.tensor_scale = x.tensor_scale;
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

}  // namespace mx::gemm
