// SPDX-License-Identifier: Apache-2.0
// split_step and packed_step, which GPUs take, against fused_step and grouped_step.
#include "libmx/gemm/split_step.hpp"

#include <random>
#include <utility>
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

// Rows of a step, split, `pitch` bytes apart: more than they take.
struct split_operand {
    struct alignas(16) part {
        std::byte bytes[16];
    };
    std::vector<part> memory;
    unsigned pitch;

    split_operand(const unpacked_operand& x, std::size_t count, int length)
        : pitch(split_bytes(length) + 16) {
        memory.assign(count * pitch / 16, {});
        for (std::size_t r = 0; r < count; ++r) split(x.row(r), length, row(r));
    }
    std::byte* row(std::size_t r) { return memory[r * pitch / 16].bytes; }
};

bool same(const factor& x, const factor& y) {
    if (x.what != y.what) return false;
    if (x.what == value_class::nan) return true;
    if (x.what == value_class::infinite) return x.negative == y.negative;
    return x.significand == y.significand && (x.significand == 0 || x.exponent == y.exponent);
}

struct outputs {
    std::size_t usual = 0, unusual = 0;
};

template <int length, conversion convert>
void compare(const step_kind& kind, const unpacked_operand& x, const unpacked_operand& y,
             const std::vector<std::uint32_t>& start, outputs& compared) {
    split_operand left(x, rows, length);
    split_operand right(y, 2 * cols, length);
    std::size_t different = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        const split_row<length> own(left.row(i));
        for (int k = 0; k < length; ++k) different += same(own[k], x.row(i)[k]) ? 0u : 1u;
    }
    CHECK(different == 0);
    std::uint32_t c[rows][cols];
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) c[i][j] = start[static_cast<std::size_t>(i * cols + j)];
    }
    // Columns 1 and 3.
    split_step<convert, length>(kind.rule, left.row(0), left.pitch, right.row(1), 2 * right.pitch,
                                c);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) {
            const std::uint32_t want =
                fused_step(kind.rule, x.row(i), y.row(1 + 2 * j), start[i * cols + j]);
            different += c[i][j] != want ? 1u : 0u;
        }
    }
    bool unusual = false;
    for (std::size_t i = 0; i < rows; ++i) {
        unusual = unusual || split_row<length>(left.row(i)).base() == split_unusual;
    }
    for (std::size_t j = 0; j < cols; ++j) {
        unusual = unusual || split_row<length>(right.row(1 + 2 * j)).base() == split_unusual;
    }
    (unusual ? compared.unusual : compared.usual) += rows * cols;
    CHECK(different == 0);
}

template <std::size_t... shape>
void compare(const accumulator& m, const operand& a, const operand& b,
             const std::vector<std::uint32_t>& start, outputs& compared,
             std::index_sequence<shape...>) {
    const step_kind kind = kind_of(a, b, m);
    const unpacked_operand x = unpack_operand(a, m);
    const unpacked_operand y = unpack_operand(b, m);
    const auto compare_as = [&]<std::size_t s>() {
        constexpr split_shape one = split_shapes[s];
        if (kind.rule.length != one.length || kind.rule.convert != one.convert) return;
        compare<one.length, one.convert>(kind, x, y, start, compared);
    };
    (compare_as.template operator()<shape>(), ...);
}

}  // namespace

TEST_CASE("outputs of split_step are those of fused_step, for every model that it takes") {
    std::mt19937_64 random(3);
    outputs compared;
    std::size_t models = 0;
    for (const accumulator& row : accumulators()) {
        if (row.how != algorithm::fused) continue;
        bool taken = false;
        for (const operand_format& fa : operand_formats) {
            for (const operand_format& fb : operand_formats) {
                for (const std::uint32_t scaling : {0u, std::uint32_t{scales_e8m0_32}}) {
                    if ((scaling != 0) != (row.scales != 0) || !takes(row, fa, fb, scaling)) {
                        continue;
                    }
                    for (const operand_kind kind : operand_kinds) {
                        for (int round = 0; round < 8; ++round) {
                            accumulator m = row;
                            // What no row has: the least floor that is taken, and subnormals that
                            // spread exponents.
                            if (round == 6) m.exponent_floor = split_least_unit + m.fraction_bits;
                            if (round == 7) m.subnormals = subnormal_alignment::leading_bit;
                            const auto depth = static_cast<std::size_t>(m.fused_length);
                            const operand a =
                                make_operand(fa, kind, side::left, scaling, rows, depth, random);
                            const operand b = make_operand(fb, kind, side::right, scaling, 2 * cols,
                                                           depth, random);
                            const auto c =
                                make_accumulators(gives_f16(m), kind, rows * cols, random);
                            if (!takes_split(kind_of(a, b, m).rule)) continue;
                            CAPTURE(m.name, fa.name, fb.name, name_of(kind), round);
                            taken = true;
                            compare(m, a, b, c, compared,
                                    std::make_index_sequence<split_shapes.size()>());
                        }
                    }
                }
            }
        }
        models += taken ? 1u : 0u;
    }
    CHECK(models > 25);
    CHECK(compared.usual > 40000);
    CHECK(compared.unusual > 4000);
}

TEST_CASE("outputs of split_step are those of fused_step for the largest sums and beside ties") {
    outputs compared;
    for (const accumulator& m : accumulators()) {
        if (m.how != algorithm::fused) continue;
        for (const operand_format& f : operand_formats) {
            if (!takes(m, f, f, 0)) continue;
            const auto depth = static_cast<std::size_t>(m.fused_length);
            const int mantissa = f.mantissa_bits + f.dropped_bits;
            const auto power = [&](int e) {  // the code of 2^e, or of zero where e is too small
                return f.bias + e < 1 ? 0u : static_cast<std::uint32_t>(f.bias + e) << mantissa;
            };
            const std::uint32_t below_two = power(0) | ((1u << mantissa) - 1u);
            const std::uint32_t minus = 1u << (f.code_bits() - 1);
            // Rows of A: 1 + 2^-11, the tie of f16, and the last bit of a sum more or less; the
            // largest terms of one sign.
            operand a, b;
            a.rows = rows;
            b.rows = 2 * cols;
            for (operand* const o : {&a, &b}) {
                o->depth = depth;
                o->format = &f;
            }
            a.codes.assign(rows * depth, 0);
            b.codes.assign(2 * cols * depth, below_two);
            for (std::size_t i = 0; i < rows; ++i) {
                std::uint32_t* const row = a.codes.data() + i * depth;
                row[0] = power(0);
                row[1] = power(-5);
                row[2] = power(m.fraction_bits / -2);
                if (i == 1) row[2] |= minus;
                if (i < 2) continue;
                std::fill_n(row, depth, i == 2 ? below_two : below_two | minus);
            }
            std::uint32_t* const column = b.codes.data() + depth;
            column[0] = power(0);
            column[1] = power(-6);
            column[2] = power(m.fraction_bits / 2 - m.fraction_bits);
            if (!takes_split(kind_of(a, b, m).rule)) continue;
            for (const std::uint32_t c : {0u, gives_f16(m) ? 0x3fffu : 0x3fffffffu}) {
                CAPTURE(m.name, f.name, c);
                compare(m, a, b, std::vector<std::uint32_t>(rows * cols, c), compared,
                        std::make_index_sequence<split_shapes.size()>());
            }
        }
    }
    CHECK(compared.usual > 1000);
    CHECK(compared.unusual == 0);

    // 16 terms of 11 bits and an accumulator may exceed 32 bits.
    accumulator longer = *find_accumulator("sm100.f16");
    CHECK(takes_split(rule_of(longer, 20)));
    longer.fused_length = 32;
    CHECK_FALSE(takes_split(rule_of(longer, 20)));
    CHECK(takes_split(rule_of(longer, 6)));
    longer.exponent_floor = split_least_unit + longer.fraction_bits - 1;
    CHECK_FALSE(takes_split(rule_of(longer, 6)));
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
                const int least = kind.least_exponent / 2;
                const packed_row left = pack(x.row(0), x.scale_row(0), least);
                const packed_row right = pack(y.row(0), y.scale_row(0), least);
                CAPTURE(m.name, scale.format, name_of(how));
                CHECK(packed_step(kind.rule, kind.least_exponent, left, right, c) ==
                      one_step(kind, x.row(0), y.row(0), x.scale_row(0), y.scale_row(0), c));
                ++compared;
            }
        }
    }
    CHECK(compared > 4000);
}
