// SPDX-License-Identifier: Apache-2.0
// split_step and packed_step, which GPUs take, against fused_step and grouped_step.
#include "libmx/gemm/split_step.hpp"

#include <random>
#include <vector>

#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/packed_groups.hpp"
#include "libmx/gemm/unpacked_operand.hpp"
#include "tests/catch.hpp"
#include "tests/parity/gemm_operands.hpp"

namespace {

using namespace mx::gemm;
using namespace mx::tests;

constexpr int rows = 4;
constexpr int cols = 2;

// A row's factors split, and rows with one unused split_words between them.
struct split_operand {
    std::vector<split_words> magnitude, exponent, sign;
    unsigned pitch;

    split_operand(const unpacked_operand& x, std::size_t count, int length, int raise)
        : pitch(static_cast<unsigned>(length / 4 + 1)) {
        const split_words none{{~0u, ~0u, ~0u, ~0u}};
        magnitude.assign(count * pitch, none);
        exponent = sign = magnitude;
        for (std::size_t r = 0; r < count; ++r) {
            for (int k = 0; k < length; ++k) {
                const split_factor f = split(x.row(r)[k], raise);
                const std::size_t at = r * pitch + static_cast<std::size_t>(k / 4);
                magnitude[at].v[k % 4] = f.magnitude;
                exponent[at].v[k % 4] = static_cast<std::uint32_t>(f.exponent);
                sign[at].v[k % 4] = static_cast<std::uint32_t>(f.sign);
            }
        }
    }
    split_rows view() const { return {magnitude.data(), exponent.data(), sign.data(), pitch}; }
};

bool finite(const unpacked_operand& x) {
    for (const factor& f : x.factors) {
        if (f.what != value_class::finite) return false;
    }
    return true;
}

template <int length>
std::size_t compare(const accumulator& m, const operand& a, const operand& b,
                    const std::vector<std::uint32_t>& start) {
    const step_kind kind = kind_of(a, b, m);
    const unpacked_operand x = unpack_operand(a, m);
    const unpacked_operand y = unpack_operand(b, m);
    if (!finite(x) || !finite(y)) return 0;
    const split_operand left(x, rows, length, split_raise(kind.rule));
    const split_operand right(y, 2 * cols, length, 0);
    std::uint32_t c[rows][cols];
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) c[i][j] = start[static_cast<std::size_t>(i * cols + j)];
    }
    // Columns 1 and 3.
    split_step<rows, cols, length>(kind.rule, left.view(), 0, right.view(), 1, 2, c);
    std::size_t different = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) {
            const std::uint32_t want =
                fused_step(kind.rule, x.row(i), y.row(1 + 2 * j), start[i * cols + j]);
            different += want != c[i][j] ? 1u : 0u;
        }
    }
    CHECK(different == 0);
    return rows * cols;
}

}  // namespace

TEST_CASE("outputs of split_step are those of fused_step, for every model that it takes") {
    std::mt19937_64 random(3);
    std::size_t compared = 0, models = 0;
    for (const accumulator& m : accumulators()) {
        if (m.how != algorithm::fused) continue;
        bool taken = false;
        for (const operand_format& fa : operand_formats) {
            for (const operand_format& fb : operand_formats) {
                for (const std::uint32_t scaling : {0u, std::uint32_t{scales_e8m0_32}}) {
                    if ((scaling != 0) != (m.scales != 0) || !takes(m, fa, fb, scaling)) continue;
                    for (const operand_kind kind : operand_kinds) {
                        for (int round = 0; round < 8; ++round) {
                            const auto depth = static_cast<std::size_t>(m.fused_length);
                            const operand a =
                                make_operand(fa, kind, side::left, scaling, rows, depth, random);
                            const operand b = make_operand(fb, kind, side::right, scaling, 2 * cols,
                                                           depth, random);
                            const auto c =
                                make_accumulators(gives_f16(m), kind, rows * cols, random);
                            if (!takes_split(kind_of(a, b, m).rule)) continue;
                            CAPTURE(m.name, fa.name, fb.name, name_of(kind));
                            taken = true;
                            if (depth == 32) compared += compare<32>(m, a, b, c);
                            if (depth == 16) compared += compare<16>(m, a, b, c);
                            if (depth == 8) compared += compare<8>(m, a, b, c);
                            if (depth == 4) compared += compare<4>(m, a, b, c);
                        }
                    }
                }
            }
        }
        models += taken ? 1u : 0u;
    }
    CHECK(models > 25);
    CHECK(compared > 40000);
}

TEST_CASE("outputs of packed_step are those of grouped_step, for every model that it takes") {
    std::mt19937_64 random(4);
    std::size_t compared = 0;
    const operand_format& e2m1 = *find_operand_format("e2m1");
    for (accumulator m : accumulators()) {
        if (m.how != algorithm::grouped) continue;
        for (const operand_scale& scale : operand_scales) {
            if (!takes(m, e2m1, e2m1, scale.bit)) continue;
            for (int round = 0; round < 800; ++round) {
                m.subnormals = round % 2 == 0 ? subnormal_alignment::least_exponent
                                              : subnormal_alignment::leading_bit;
                const operand_kind how =
                    operand_kinds[static_cast<std::size_t>(round) % operand_kinds.size()];
                const operand a = make_operand(e2m1, how, side::left, scale.bit, 1, 64, random);
                const operand b = make_operand(e2m1, how, side::right, scale.bit, 1, 64, random);
                const std::uint32_t c = make_accumulators(false, how, 1, random)[0];
                const step_kind kind = kind_of(a, b, m);
                REQUIRE(takes_packed(kind.rule, kind.element_fraction_bits));
                const unpacked_operand x = unpack_operand(a, m);
                const unpacked_operand y = unpack_operand(b, m);
                packed_group left[packed_groups] = {};
                packed_group right[packed_groups] = {};
                for (int k = 0; k < 64; ++k) {
                    pack(left[k / 16], k % 16, x.row(0)[k], kind.least_exponent / 2);
                    pack(right[k / 16], k % 16, y.row(0)[k], kind.least_exponent / 2);
                }
                CAPTURE(m.name, scale.format, name_of(how));
                CHECK(packed_step(kind.rule, kind.least_exponent, left, right, x.scale_row(0),
                                  y.scale_row(0), c) ==
                      one_step(kind, x.row(0), y.row(0), x.scale_row(0), y.scale_row(0), c));
                ++compared;
            }
        }
    }
    CHECK(compared > 4000);
}
