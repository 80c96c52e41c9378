// SPDX-License-Identifier: Apache-2.0
// Every backend of emulated products against the plain loop, bit for bit.
#include <random>
#include <string>

#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/gemm/simd/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/parity/gemm_operands.hpp"

namespace {

using namespace mx::gemm;
using namespace mx::tests;

struct shape {
    std::size_t rows, columns, depth;
};

struct product {
    operand a, b;
    std::vector<std::uint32_t> c;
};

product make_product(const accumulator& m, const operand_format& fa, const operand_format& fb,
                     std::uint32_t scaling, operand_kind kind, const shape& s,
                     std::mt19937_64& random) {
    return {make_operand(fa, kind, side::left, scaling, s.rows, s.depth, random),
            make_operand(fb, kind, side::right, scaling, s.columns, s.depth, random),
            make_accumulators(gives_f16(m), kind, s.rows * s.columns, random)};
}

std::vector<std::uint32_t> result_of(const product& p, const accumulator& m, const arrangement& how,
                                     std::string_view backend, int threads) {
    multiply_control control;
    control.backend = backend;
    control.threads = threads;
    return multiply(p.a, p.b, p.c, m, how, control);
}

// The backends that differ from the plain loop, with the positions; counts the comparisons.
std::string disagreement(const product& p, const accumulator& m, const arrangement& how,
                         std::size_t& compared) {
    const auto expected = result_of(p, m, how, "scalar", 1);
    for (const backend& b : backends()) {
        if (!b.available() || b.name == "scalar") continue;
        const auto got = result_of(p, m, how, b.name, 1);
        compared += got.size();
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (got[i] == expected[i]) continue;
            return std::string(b.name) + " at output " + std::to_string(i) + ": " +
                   std::to_string(got[i]) + " for " + std::to_string(expected[i]);
        }
    }
    return "";
}

// Calls body(model, format of A, format of B, scaling) for all that the vector kernels are for.
template <class Body>
void each_pair(Body body) {
    for (const accumulator& m : accumulators()) {
        if (m.how != algorithm::fused && m.how != algorithm::grouped) continue;
        for (const operand_format& a : operand_formats) {
            for (const operand_format& b : operand_formats) {
                for (const std::uint32_t scaling : scalings_of(m, a, b)) body(m, a, b, scaling);
            }
        }
    }
}

arrangement arrangement_of(std::uint64_t seed) {
    arrangement how;
    how.order = seed % 2 == 0 ? k_order::ascending : k_order::descending;
    how.slices = 1 + seed % 3;
    how.accumulate_c = seed % 4 < 3;
    return how;
}

}  // namespace

TEST_CASE("every matrix unit, every pair of operands, every kind of input") {
    std::mt19937_64 random(1);
    std::size_t compared = 0;
    std::uint64_t seed = 0;
    each_pair([&](const accumulator& m, const operand_format& a, const operand_format& b,
                  std::uint32_t scaling) {
        for (const operand_kind kind : operand_kinds) {
            const product p = make_product(m, a, b, scaling, kind, {3, 37, 150}, random);
            CAPTURE(m.name, a.name, b.name, scaling, name_of(kind));
            CHECK(disagreement(p, m, arrangement_of(seed++), compared) == "");
        }
    });
    CHECK(compared > 500000);
}

TEST_CASE("every shape: parts of groups of columns, of tiles, of steps") {
    std::mt19937_64 random(2);
    std::size_t compared = 0;
    for (const char* name : {"sm100.mxf8f6f4", "sm100.mxf4nvf4", "sm100.tf32", "sm90.wgmma.fp8"}) {
        const accumulator& m = *find_accumulator(name);
        const operand_format& f = *find_operand_format(m.how == algorithm::grouped ? "e2m1"
                                                       : m.fused_length == 8       ? "tf32"
                                                                                   : "e4m3");
        for (const shape& s : {shape{1, 1, 1},
                               {1, 31, 33},
                               {2, 32, 64},
                               {31, 33, 65},
                               {32, 64, 96},
                               {33, 65, 31},
                               {67, 5, 200},
                               {5, 100, 1000}}) {
            for (const std::uint32_t scaling : scalings_of(m, f, f)) {
                const product p =
                    make_product(m, f, f, scaling, operand_kind::finite_bits, s, random);
                CAPTURE(name, s.rows, s.columns, s.depth, scaling);
                CHECK(disagreement(p, m, {}, compared) == "");
            }
        }
    }
    CHECK(compared > 10000);
}

TEST_CASE("models that nobody built") {
    std::mt19937_64 random(3);
    std::size_t compared = 0;
    std::uint64_t seed = 0;
    for (const char* name : {"sm100.mxf8f6f4", "sm100.f16", "sm100.mxf4nvf4", "sm100.mma.tf32"}) {
        accumulator m = *find_accumulator(name);
        const bool grouped = m.how == algorithm::grouped;
        for (const int fraction_bits : {1, 2, 7, 13, 22, 24, 25, 26, 33, 36, 40}) {
            for (const int floor : {-400, -150, -133, -22, 0, 40}) {
                for (const conversion to :
                     {conversion::rz_fp32, conversion::rz_e8m13, conversion::rne_fp16}) {
                    m.fraction_bits = fraction_bits;
                    m.exponent_floor = floor;
                    m.convert = to;
                    m.underflow = seed % 2 == 0 ? zero_sign::plus : zero_sign::kept;
                    if (!grouped && m.scales == 0) m.fused_length = 1 + static_cast<int>(seed % 40);
                    const operand_kind kind = operand_kinds[seed % operand_kinds.size()];
                    for (const operand_format& f : operand_formats) {
                        for (const std::uint32_t scaling : scalings_of(m, f, f)) {
                            const product p =
                                make_product(m, f, f, scaling, kind, {2, 33, 100}, random);
                            CAPTURE(name, f.name, fraction_bits, floor, static_cast<int>(to));
                            CAPTURE(m.fused_length, name_of(kind), scaling);
                            REQUIRE(simd::computes(m, p.a, p.b));
                            arrangement how;
                            how.accumulate_c = true;
                            CHECK(disagreement(p, m, how, compared) == "");
                        }
                    }
                    ++seed;
                }
            }
        }
    }
    CHECK(compared > 100000);
}

TEST_CASE("sums at the ends of the output's range") {
    // Long chains of equal signs run into infinity, chains of the smallest products stay subnormal.
    std::mt19937_64 random(4);
    std::size_t compared = 0;
    each_pair([&](const accumulator& m, const operand_format& a, const operand_format& b,
                  std::uint32_t scaling) {
        if (&a != &b) return;
        for (const operand_kind kind : {operand_kind::largest, operand_kind::smallest}) {
            product p = make_product(m, a, b, scaling, kind, {2, 33, 700}, random);
            const std::uint32_t sign = 1u << (a.code_bits() - 1);
            for (std::uint32_t& code : p.a.codes) code &= ~sign;
            for (std::uint32_t& code : p.b.codes) code |= sign;
            arrangement how;
            how.accumulate_c = true;
            CAPTURE(m.name, a.name, scaling, name_of(kind));
            CHECK(disagreement(p, m, how, compared) == "");
        }
    });
    CHECK(compared > 10000);
}

TEST_CASE("exact sums, chains and trees, every format, every kind of input") {
    std::mt19937_64 random(8);
    std::size_t compared = 0;
    std::uint64_t seed = 0;
    for (const char* name : {"exact", "fp32.fma", "fp32.pairwise", "bf16.fma", "cdna3.f32"}) {
        const accumulator& m = *find_accumulator(name);
        for (const operand_format& f : operand_formats) {
            for (const std::uint32_t scaling : scalings_of(m, f, f)) {
                if (f.member == takes_f32 && scaling != 0) continue;
                for (const operand_kind kind : operand_kinds) {
                    const product p = make_product(m, f, f, scaling, kind, {3, 37, 150}, random);
                    CAPTURE(name, f.name, scaling, name_of(kind));
                    CHECK(disagreement(p, m, arrangement_of(seed++), compared) == "");
                }
            }
        }
    }
    CHECK(compared > 100000);
}

TEST_CASE("threads change no bit of a product") {
    std::mt19937_64 random(5);
    const accumulator& m = *find_accumulator("sm100.mxf8f6f4");
    const operand_format& f = *find_operand_format("e4m3");
    const product p =
        make_product(m, f, f, scales_e8m0_32, operand_kind::few_special, {70, 130, 256}, random);
    for (const backend& b : backends()) {
        if (!b.available()) continue;
        CAPTURE(b.name);
        const auto one = result_of(p, m, {}, b.name, 1);
        CHECK(result_of(p, m, {}, b.name, 2) == one);
        CHECK(result_of(p, m, {}, b.name, 5) == one);
    }
}

TEST_CASE("vector kernels do what the plain loop would do for them") {
    // Guards against a smaller domain of computes(), which the tests above would not notice.
    std::mt19937_64 random(6);
    each_pair([&](const accumulator& m, const operand_format& a, const operand_format& b,
                  std::uint32_t scaling) {
        const product p = make_product(m, a, b, scaling, operand_kind::zeros, {1, 1, 1}, random);
        CAPTURE(m.name, a.name, b.name, scaling);
        CHECK(simd::computes(m, p.a, p.b));
    });
}

TEST_CASE("what the kernels do not compute is left to the plain loop") {
    std::mt19937_64 random(7);
    const operand_format& f = *find_operand_format("e5m2");
    accumulator m = *find_accumulator("sm100.f8f6f4");
    const product p = make_product(m, f, f, 0, operand_kind::subnormal, {2, 40, 70}, random);
    std::size_t compared = 0;
    const auto left_out = [&](const accumulator& changed) {
        CHECK_FALSE(simd::computes(changed, p.a, p.b));
        CHECK(disagreement(p, changed, {}, compared) == "");
    };
    accumulator changed = m;
    changed.subnormals = subnormal_alignment::leading_bit;
    left_out(changed);
    changed = m;
    changed.zero = zero_sign::kept;
    left_out(changed);
    changed = m;
    changed.fraction_bits = 41;
    left_out(changed);
    left_out(*find_accumulator("fp32.pairwise"));
    CHECK(compared > 0);
}

TEST_CASE("backends of products are named, and each has vectors of its own width") {
    using simd::target;
    for (const auto& [t, name, lanes] :
         {std::tuple{target::sse4, "sse4", 4}, std::tuple{target::avx2, "avx2", 8},
          std::tuple{target::avx512, "avx512", 16}, std::tuple{target::neon, "neon", 4}}) {
        const auto* kernels = simd::kernels_for(t);
        CAPTURE(name);
        if (kernels != nullptr) CHECK(kernels->float_lanes() == lanes);
        bool listed = false;
        for (const backend& b : backends()) {
            if (b.name != name) continue;
            listed = true;
            CHECK(b.available() == simd::supported(t));
        }
        CHECK(listed);
    }
    CHECK(backend_named("").name == best_backend().name);
    CHECK(backend_named("scalar").name == "scalar");
    CHECK_THROWS_AS(backend_named("avx"), mx::base::error);
}
