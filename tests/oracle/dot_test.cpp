// SPDX-License-Identifier: Apache-2.0
// Compares the integer steps with their statement in rationals, for every model and operand format,
// on inputs that make roundings occur.
#include "tests/oracle/dot.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/terms.hpp"
#include "tests/catch.hpp"

namespace {

namespace gemm = mx::gemm;
namespace oracle = mx::oracle;

using gemm::operand_format;

oracle::operand_facts facts_of(const operand_format& f) {
    return {f.exponent_bits, f.mantissa_bits, f.bias,
            static_cast<oracle::code_specials>(static_cast<int>(f.special)), f.dropped_bits};
}

oracle::sum_target wanted_form(gemm::conversion c) {
    if (c == gemm::conversion::rne_fp16) return {oracle::f16_facts, 10, true};
    return {oracle::f32_facts, c == gemm::conversion::rz_e8m13 ? 13 : 23,
            c == gemm::conversion::rne_fp32};
}

// One dot product of one step.
struct problem {
    std::vector<std::uint32_t> a, b;
    std::vector<std::uint8_t> sa, sb;
    std::uint32_t c = 0;
};

class source {
  public:
    explicit source(std::uint64_t seed) : engine_(seed) {}
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
    std::uint32_t word() { return static_cast<std::uint32_t>(engine_()); }
    bool one_in(std::uint32_t n) { return below(n) == 0; }

  private:
    std::mt19937_64 engine_;
};

// Codes of one of five kinds: any bits; finite within a few binades of a random exponent; the same
// over a wide range; pairs that cancel; subnormals and zeros.
std::uint32_t code_of(const operand_format& f, source& random, int kind, std::uint32_t around) {
    const int mantissa = f.mantissa_bits + f.dropped_bits;
    const std::uint32_t fields = 1u << f.exponent_bits;
    const std::uint32_t sign = random.below(2) << (f.exponent_bits + mantissa);
    const std::uint32_t fraction = random.word() & ((1u << mantissa) - 1u);
    if (kind == 0) {
        return sign | random.below(fields) << mantissa | fraction;
    }
    if (kind == 4) return sign | (random.one_in(3) ? 0u : fraction);
    const std::uint32_t spread = kind == 1 ? 4 : fields;
    const std::uint32_t field = (around + random.below(spread)) % std::max(fields - 1u, 1u);
    return sign | field << mantissa | fraction;
}

problem make_problem(const gemm::accumulator& m, const operand_format& fa, const operand_format& fb,
                     const gemm::operand_scale* scale, source& random, int kind) {
    // The steps of an instruction.
    const auto length = static_cast<std::size_t>(m.fused_length * steps_at_once(m.enters));
    problem p;
    const std::uint32_t around_a = random.word() % (1u << fa.exponent_bits);
    const std::uint32_t around_b = random.word() % (1u << fb.exponent_bits);
    for (std::size_t k = 0; k < length; ++k) {
        p.a.push_back(code_of(fa, random, kind, around_a));
        p.b.push_back(code_of(fb, random, kind, around_b));
        const bool cancels = kind == 3 && k % 2 == 1 && !random.one_in(4);
        if (!cancels) continue;
        const std::uint32_t sign = 1u << (fa.code_bits() - 1);
        p.a[k] = p.a[k - 1] ^ sign;
        p.b[k] = p.b[k - 1];
    }
    if (scale != nullptr) {
        const std::uint32_t centre = random.below(256);
        for (std::size_t k = 0; k < length; k += scale->block) {
            const auto near = [&](std::uint32_t at) {
                const std::uint32_t code = kind == 0 ? random.word() : at + random.below(24);
                return static_cast<std::uint8_t>(code & 0xffu);
            };
            p.sa.push_back(near(centre));
            // The product of the scales has any size, or is about 1.
            p.sb.push_back(near(random.one_in(2) ? random.below(256) : 254 - centre));
        }
    }
    const int width = gives_f16(m) ? 16 : 32;
    p.c = random.word() >> (32 - width);
    if (random.one_in(4)) p.c = random.below(2) << (width - 1);
    if (random.one_in(2) && kind != 0) {
        // About the size of a product, if there is one.
        const operand_format& f = *gemm::find_operand_format(gives_f16(m) ? "f16" : "f32");
        const int e = static_cast<int>(around_a) - fa.bias + static_cast<int>(around_b) - fb.bias +
                      static_cast<int>(random.below(30)) - 20 + f.bias;
        const auto field = static_cast<std::uint32_t>(std::clamp(e, 0, (1 << f.exponent_bits) - 2));
        p.c = (p.c & ((1u << f.mantissa_bits) - 1u)) | field << f.mantissa_bits |
              random.below(2) << (width - 1);
    }
    return p;
}

gemm::operand operand_of(const operand_format& f, const gemm::operand_scale* scale,
                         const std::vector<std::uint32_t>& codes,
                         const std::vector<std::uint8_t>& scales) {
    gemm::operand x;
    x.rows = 1;
    x.depth = codes.size();
    x.format = &f;
    x.codes = codes;
    if (scale != nullptr) {
        x.scaling = scale->bit;
        x.scale_block = scale->block;
        x.scales = scales;
    }
    return x;
}

std::uint32_t by_integers(const gemm::accumulator& m, const operand_format& fa,
                          const operand_format& fb, const gemm::operand_scale* scale,
                          const problem& p) {
    gemm::arrangement how;
    how.accumulate_c = true;
    gemm::multiply_control control;
    control.threads = 1;
    control.backend = "scalar";
    return gemm::multiply(operand_of(fa, scale, p.a, p.sa), operand_of(fb, scale, p.b, p.sb),
                          {&p.c, 1}, m, how, control)[0];
}

oracle::addend scale_at(const gemm::operand_scale& s, std::uint8_t code) {
    return s.format == "e8m0" ? oracle::read_e8m0(code) : oracle::read_ue4m3(code);
}

// The products of a step of a `fused` model, scales included.
std::vector<oracle::addend> products_of(const operand_format& fa, const operand_format& fb,
                                        const gemm::operand_scale* scale, const problem& p) {
    std::vector<oracle::addend> products;
    for (std::size_t k = 0; k < p.a.size(); ++k) {
        oracle::addend x = oracle::product(oracle::read_code(facts_of(fa), p.a[k]),
                                           oracle::read_code(facts_of(fb), p.b[k]));
        if (scale != nullptr) {
            x = oracle::product(x, oracle::product(scale_at(*scale, p.sa[k / scale->block]),
                                                   scale_at(*scale, p.sb[k / scale->block])));
        }
        products.push_back(x);
    }
    return products;
}

// The same number read from f16, which is normal from 2^-14 on.
oracle::addend widened(oracle::addend x) {
    if (x.what != oracle::number_class::finite || x.value == 0) return x;
    x.exponent = -14;
    while (abs(x.value) >= oracle::power_of_two(x.exponent + 1)) ++x.exponent;
    return x;
}

// Two f16 steps, the first over k mod 4 = 0 and 1, with c added in its own format.
std::uint32_t by_halves(const gemm::accumulator& m, const operand_format& fa,
                        const operand_format& fb, const problem& p) {
    const oracle::sum_target to = wanted_form(m.convert);
    std::uint32_t sum = 0;
    for (const std::size_t half : {0u, 1u}) {
        oracle::fused_terms t;
        for (std::size_t k = 0; k < p.a.size(); ++k) {
            if (k % 4 / 2 != half) continue;
            t.terms.push_back(oracle::product(widened(oracle::read_code(facts_of(fa), p.a[k])),
                                              widened(oracle::read_code(facts_of(fb), p.b[k]))));
            t.live.push_back(t.terms.back().value != 0);
        }
        t.terms.push_back(oracle::read_code(to.format, sum));
        t.live.push_back(t.terms.back().value != 0);
        sum = oracle::fused_sum(to, m.fraction_bits, m.exponent_floor, t);
    }
    const std::vector<oracle::addend> both{oracle::read_code(to.format, p.c),
                                           oracle::read_code(to.format, sum)};
    if (!gives_f16(m)) return oracle::exact_sum_f32(both);
    std::uint32_t special = 0;
    if (oracle::special_sum(to, both, special)) return special;
    // -0 only from two -0.
    const bool minus = both[0].negative && both[1].negative;
    const oracle::rational exact = both[0].value + both[1].value;
    return exact == 0 && minus ? 0x8000u : oracle::round_sum(to, exact);
}

std::uint32_t by_rationals(const gemm::accumulator& m, const operand_format& fa,
                           const operand_format& fb, const gemm::operand_scale* scale,
                           const problem& p) {
    if (m.enters == gemm::intake::halves) return by_halves(m, fa, fb, p);
    const oracle::sum_target to = wanted_form(m.convert);
    const oracle::addend c = oracle::read_code(to.format, p.c);
    std::vector<oracle::addend> products = products_of(fa, fb, scale, p);
    if (m.how == gemm::algorithm::two_sided) {
        for (oracle::addend& x : products) {
            if (abs(x.value) >= oracle::power_of_two(128)) {
                x.what = oracle::number_class::infinite;
            }
        }
        return oracle::two_sided_sum(to, m.fraction_bits, m.wide_fraction_bits, {products}, c,
                                     false);
    }
    if (m.how == gemm::algorithm::interleaved) {
        std::vector<std::vector<oracle::addend>> halves(2);
        for (std::size_t k = 0; k < products.size(); ++k) halves[k % 2].push_back(products[k]);
        return oracle::two_sided_sum(to, m.fraction_bits, m.wide_fraction_bits, halves, c, true);
    }
    const bool with_c = m.c == gemm::entry::term;
    oracle::fused_terms t;
    if (m.how == gemm::algorithm::grouped) {
        const auto length = static_cast<std::size_t>(m.group_length);
        for (std::size_t k = 0; k < products.size(); k += length) {
            const oracle::addend s = oracle::product(scale_at(*scale, p.sa[k / scale->block]),
                                                     scale_at(*scale, p.sb[k / scale->block]));
            oracle::addend group = s;
            group.value = 0;
            bool live = false;
            for (std::size_t i = k; i < k + length; ++i) {
                group.value += products[i].value;
                live = live || products[i].value != 0;
            }
            t.terms.push_back(group);
            t.live.push_back(live);
        }
    } else {
        for (const oracle::addend& x : products) t.live.push_back(x.value != 0);
        t.terms = products;
    }
    if (with_c) {
        t.terms.push_back(c);
        t.live.push_back(c.value != 0);
    }
    const std::uint32_t sum = oracle::fused_sum(to, m.fraction_bits, m.exponent_floor, t);
    if (m.c != gemm::entry::afterwards) return sum;
    return oracle::exact_sum_f32({c, oracle::read_code(to.format, sum)});
}

// Every problem of a model, a pair of formats and a scale.
void compare(const gemm::accumulator& m, const operand_format& fa, const operand_format& fb,
             const gemm::operand_scale* scale, int rounds) {
    const std::string name = to_string(m) + " " + std::string(fa.name) + " x " +
                             std::string(fb.name) + (scale ? " scaled" : "");
    source random(mx::base::bits_of(static_cast<float>(name.size())) + m.name.size() * 977u);
    int differ = 0;
    for (int i = 0; i < rounds; ++i) {
        const problem p = make_problem(m, fa, fb, scale, random, i % 5);
        const std::uint32_t got = by_integers(m, fa, fb, scale, p);
        const std::uint32_t want = by_rationals(m, fa, fb, scale, p);
        if (got == want) continue;
        if (differ++ == 0) {
            UNSCOPED_INFO(name << ", round " << i << ": " << std::hex << got << " for " << want);
        }
    }
    CHECK(differ == 0);
}

void compare_all_operands(const gemm::accumulator& m, int rounds) {
    for (const operand_format& fa : gemm::operand_formats) {
        for (const operand_format& fb : gemm::operand_formats) {
            if (m.scales == 0 && takes(m, fa, fb, 0)) compare(m, fa, fb, nullptr, rounds);
            for (const gemm::operand_scale& s : gemm::operand_scales) {
                if (m.scales != 0 && takes(m, fa, fb, s.bit)) compare(m, fa, fb, &s, rounds);
            }
        }
    }
}

}  // namespace

TEST_CASE("integer steps do what their statement in rationals says") {
    int models = 0;
    for (const gemm::accumulator& m : gemm::accumulators()) {
        if (!has_steps(m.how)) continue;
        // Rows of the same parameters are the same arithmetic; the first of each is run long.
        const bool many = (m.operands & gemm::takes_fp6) != 0;
        compare_all_operands(m, many ? 100 : 400);
        ++models;
    }
    CHECK(models >= 30);
}

TEST_CASE("and with the fields changed") {
    for (const char* spelling :
         {"sm100.f8f6f4:fused_length=7,fraction_bits=11,exponent_floor=-3",
          "sm100.f16:fraction_bits=48",
          "sm100.mxf4nvf4:fused_length=16,group_length=4,fraction_bits=3",
          "sm100.mxf4nvf4:fraction_bits=44,exponent_floor=-20", "sm80.tf32:convert=rne-fp32",
          "sm100.mxf8f6f4:convert=rne-fp16,exponent_floor=-22",
          "cdna3.f16:fraction_bits=10,wide_fraction_bits=12,fused_length=5",
          "cdna3.fp8:fraction_bits=9,wide_fraction_bits=48"}) {
        compare_all_operands(gemm::parse_accumulator(spelling), 100);
    }
}

TEST_CASE("the exact model rounds once") {
    const gemm::accumulator m = gemm::parse_accumulator("exact");
    source random(8);
    int ties = 0;
    for (int i = 0; i < 2000; ++i) {
        const operand_format& f = gemm::operand_formats[random.below(gemm::operand_formats.size())];
        gemm::accumulator length = m;
        length.fused_length = 1 + static_cast<int>(random.below(12));
        problem p = make_problem(length, f, f, nullptr, random, i % 5);
        if (f.name == "f32" && i % 2 == 0) {
            // 1 + 2^-24 and a last product far below: wrong if rounded twice.
            const auto bits = [](float x) { return mx::base::bits_of(x); };
            const float tail = random.one_in(2) ? 0x1p-60F : -0x1p-60F;
            p.a = {bits(1.0F), bits(0x1p-12F), bits(tail)};
            p.b = {bits(1.0F), bits(0x1p-12F), bits(random.one_in(3) ? 0.0F : 0x1p-60F)};
            p.c = 0;
            ++ties;
        }
        std::vector<oracle::addend> terms = products_of(f, f, nullptr, p);
        terms.push_back(oracle::read_code(oracle::f32_facts, p.c));
        const std::uint32_t got = by_integers(m, f, f, nullptr, p);
        const std::uint32_t want = oracle::exact_sum_f32(terms);
        if (got != want) {
            UNSCOPED_INFO(f.name << ", round " << i << ": " << std::hex << got << " for " << want);
            CHECK(got == want);
            break;
        }
    }
    CHECK(ties > 20);
}

TEST_CASE("the statement itself, by hand") {
    using oracle::rational;
    const oracle::sum_target rz{oracle::f32_facts, 23, false};
    const oracle::sum_target half{oracle::f16_facts, 10, true};
    CHECK(oracle::round_sum(rz, 1) == 0x3f800000u);
    CHECK(oracle::round_sum(rz, rational(-1, 3)) == 0xbeaaaaaau);
    CHECK(oracle::round_sum(rz, oracle::power_of_two(-149)) == 1u);
    CHECK(oracle::round_sum(rz, -oracle::power_of_two(-150)) == 0x80000000u);
    CHECK(oracle::round_sum(rz, oracle::power_of_two(128)) == 0x7f800000u);
    CHECK(oracle::round_sum({oracle::f32_facts, 13, false}, rational(4095, 4096) + 1) ==
          0x3ffff800u);
    CHECK(oracle::round_sum(half, 65519) == 0x7bffu);
    CHECK(oracle::round_sum(half, 65520) == 0x7c00u);
    CHECK(oracle::round_sum(half, oracle::power_of_two(-25)) == 0u);
    CHECK(oracle::round_sum(half, -3 * oracle::power_of_two(-25)) == 0x8002u);
    // 1 - 2^-25 + 2^-26: F = 25 cuts off the last term, F = 24 the last two.
    const auto term = [](int sign, int e) {
        return oracle::addend{oracle::number_class::finite, sign < 0,
                              rational(sign) * oracle::power_of_two(e), e};
    };
    const oracle::fused_terms t{{term(1, 0), term(-1, -25), term(1, -26)}, {true, true, true}};
    CHECK(oracle::fused_sum(rz, 25, -133, t) == 0x3f7fffffu);
    CHECK(oracle::fused_sum(rz, 24, -133, t) == 0x3f800000u);
}
