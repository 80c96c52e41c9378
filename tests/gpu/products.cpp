// SPDX-License-Identifier: Apache-2.0
// Emulated products on the device against the plain loop, bit for bit.
#include <random>
#include <string>
#include <vector>

#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/cuda/device_engine.hpp"
#include "libmx/gemm/multiply.hpp"
#include "tests/gpu/card_test.hpp"
#include "tests/parity/gemm_operands.hpp"

namespace {

using namespace mx::gemm;
using namespace mx::tests;

int compare(const selection& cases) {
    std::mt19937_64 random(1);
    case_count count;
    std::size_t outputs = 0;
    std::uint64_t turn = 0;
    const auto one = [&](const accumulator& m, const operand_format& fa, const operand_format& fb,
                         std::uint32_t scaling, operand_kind kind) {
        if (!cases.wants(m.name) || turn++ % cases.every != 0) return;
        // More than one block of the kernels.
        constexpr std::size_t rows = 35, columns = 70, depth = 300;
        const operand a = make_operand(fa, kind, side::left, scaling, rows, depth, random);
        const operand b = make_operand(fb, kind, side::right, scaling, columns, depth, random);
        if (!cuda::computes(m, a, b)) return;
        const auto c = make_accumulators(gives_f16(m), kind, rows * columns, random);
        arrangement how;
        how.order = outputs % 2 == 0 ? k_order::ascending : k_order::descending;
        how.slices = 1 + outputs % 3;
        multiply_control control;
        control.threads = 2;
        control.backend = "scalar";
        const auto expected = multiply(a, b, c, m, how, control);
        control.backend = "cuda";
        const auto got = multiply(a, b, c, m, how, control);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != expected[i] ? 1u : 0u;
        outputs += got.size();
        count(std::string(m.name) + ", " + std::string(fa.name) + " by " + std::string(fb.name) +
                  ", " + std::string(name_of(kind)),
              wrong == 0 ? "" : std::to_string(wrong) + " outputs differ");
    };
    for (const accumulator& m : accumulators()) {
        for (const operand_format& fa : operand_formats) {
            for (const operand_format& fb : operand_formats) {
                for (const std::uint32_t scaling : scalings_of(m, fa, fb)) {
                    for (const operand_kind kind : operand_kinds) one(m, fa, fb, scaling, kind);
                }
            }
        }
    }
    return count.result(cases.least(400));
}

}  // namespace

int main(int argc, char** argv) { return mx::tests::exit_code_of(argc, argv, compare); }
