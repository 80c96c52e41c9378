// SPDX-License-Identifier: Apache-2.0
// A second implementation of scales that are not powers of two: block scales, codes, counts and the
// choice of four-over-six from exact integers, for every rounding.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/oracle/number.hpp"
#include "libmx/oracle/rounding.hpp"
#include "tests/catch.hpp"

namespace {

using mx::codec::block_params;
using mx::oracle::integer;
using mx::oracle::rational;
using mx::oracle::ticks_of;

constexpr std::size_t block_size = 16;

std::uint32_t draw_of(std::uint64_t stream, std::uint64_t i) {
    return mx::base::random_u32({7, stream}, i);
}

// Blocks of values between powers of two, with ties; `wide` adds blocks and elements far away.
std::vector<float> values_of(std::uint64_t stream, std::size_t blocks, bool wide) {
    std::vector<float> x;
    for (std::size_t b = 0; b < blocks; ++b) {
        const int exponent =
            wide && b % 4 == 0 ? static_cast<int>(draw_of(stream, b) % 60) - 30 : 0;
        for (std::size_t i = 0; i < block_size; ++i) {
            const std::uint32_t r = draw_of(stream + 1, b * block_size + i);
            const auto m = static_cast<float>(static_cast<std::int32_t>(r)) * 0x1p-31f;
            float v = std::ldexp(m, exponent - static_cast<int>(r % 5));
            if (b % 3 == 0) v = std::round(v * 24) / 24;  // ties are common among 24ths
            if (r % 97 == 0) v = 0;
            if (wide && b % 7 == 0 && i > 3) v *= 0x1p-40f;
            x.push_back(v);
        }
    }
    return x;
}

// S in ticks squared, so that y = x ticks / S.
integer scale_ticks(const block_params& p, float scale) {
    return ticks_of(scale) * ticks_of(p.tensor.decode);
}

struct stated_block {
    std::vector<mx::oracle::rounded> elements;
    rational error2 = 0;
    rational error1 = 0;
    rational most = 0;
};

stated_block state(const block_params& p, const mx::oracle::value_list& list,
                   std::span<const float> x, float scale, std::uint64_t first) {
    stated_block out;
    const integer denominator = scale_ticks(p, scale);
    const rational s = mx::oracle::exact(scale) * mx::oracle::exact(p.tensor.decode);
    for (std::size_t i = 0; i < x.size(); ++i) {
        mx::oracle::rounded q{};
        if (denominator != 0) {
            const integer numerator = ticks_of(x[i]) * mx::oracle::ticks_of_power(0);
            q = mx::oracle::round_to(list, numerator, denominator, std::signbit(x[i]),
                                     {p.mode.how, p.mode.ties, p.mode.random_bits},
                                     mx::base::random_u32({p.seed, 1}, first + i));
        } else if (std::signbit(x[i])) {
            q.code = list.element->floating() ? list.element->sign_bit() : 0;
        }
        out.elements.push_back(q);
        const rational d = s * q.quanta * mx::oracle::power_of_two(list.quantum_exponent);
        const rational e = abs(rational(d - mx::oracle::exact(x[i])));
        out.error2 += e * e;
        out.error1 += e;
        out.most = std::max(out.most, e);
    }
    return out;
}

void check_recipe(const std::string& text, std::uint64_t stream) {
    CAPTURE(text);
    const mx::codec::recipe r = mx::codec::parse_recipe(text);
    const std::vector<float> x = values_of(stream, 210, r.select == mx::codec::four_over_six::none);
    mx::codec::tensor_facts facts;
    for (const float v : x) {
        facts.amax_bits = std::max(facts.amax_bits, mx::base::bits_of(std::abs(v)));
    }
    const block_params p = mx::codec::params_of(r, facts);
    const bool full = r.minimum == mx::codec::int_min::full;
    const auto list = mx::oracle::list_values(*r.element, full);
    const auto largest = mx::oracle::exact(p.largest);
    std::uint64_t different = 0, fours = 0;
    for (std::size_t first = 0; first < x.size(); first += block_size) {
        const std::span<const float> block(x.data() + first, block_size);
        std::vector<std::uint8_t> codes(block_size);
        const mx::codec::block_place place{1, first, block_size, static_cast<int>(block_size)};
        const auto got = mx::codec::measure_block(p, block, place, codes);

        float amax = 0;
        for (const float v : block) amax = std::max(amax, std::abs(v));
        float scale = 0;
        if (r.scale_format->is_number()) {
            // The block scale: amax / (M g), the quotient rounded once to UE4M3.
            const auto scales = mx::oracle::list_values(r.scale_format->number, false);
            const auto chosen = [&](const rational& target) {
                const rational divisor = mx::oracle::exact(p.tensor.decode) * target;
                const rational y = mx::oracle::exact(amax) / divisor;
                const auto s = mx::oracle::round_to(scales, integer(numerator(y)),
                                                    integer(denominator(y)), false, {}, 0);
                return std::ldexp(static_cast<float>(s.quanta), scales.quantum_exponent);
            };
            scale = chosen(largest);
            if (r.select != mx::codec::four_over_six::none) {
                using mx::codec::four_over_six;
                const float four = chosen(4);
                const auto with6 = state(p, list, block, scale, first);
                const auto with4 = state(p, list, block, four, first);
                const bool less = r.select == four_over_six::mse   ? with4.error2 < with6.error2
                                  : r.select == four_over_six::mae ? with4.error1 < with6.error1
                                                                   : with4.most < with6.most;
                fours += less ? 1u : 0u;
                if (less) scale = four;
            }
        } else if (r.rule->name == "amax") {
            // float32(amax / M): the float32 with the smallest distance to the quotient.
            scale = amax == 0 ? 1.0f : amax / p.largest;
            const rational y = mx::oracle::exact(amax) / largest;
            const rational off = abs(rational(mx::oracle::exact(scale) - y));
            for (const float other : {std::nextafter(scale, 0.0f), std::nextafter(scale, 1e38f)}) {
                if (amax != 0) CHECK(abs(rational(mx::oracle::exact(other) - y)) >= off);
            }
        } else {
            scale = 1;
            const rational y = mx::oracle::exact(amax) / largest;
            while (amax != 0 && mx::oracle::exact(scale) < y) scale *= 2;
            while (amax != 0 && mx::oracle::exact(scale / 2) >= y) scale /= 2;
        }
        different += got.scale != scale ? 1u : 0u;

        const stated_block want = state(p, list, block, scale, first);
        mx::block::block_counts c{};
        for (std::size_t i = 0; i < block_size; ++i) {
            const mx::oracle::rounded& q = want.elements[i];
            different += codes[i] != q.code ? 1u : 0u;
            if (block[i] == 0) continue;
            ++c.nonzero;
            c.overflow += q.beyond ? 1u : 0u;
            c.clamp += q.clamped ? 1u : 0u;
            c.top_code += q.top ? 1u : 0u;
            c.underflow += q.quanta == 0 ? 1u : 0u;
            c.subnormal += q.subnormal ? 1u : 0u;
        }
        different += c.nonzero != got.count.nonzero || c.overflow != got.count.overflow ||
                             c.clamp != got.count.clamp || c.top_code != got.count.top_code ||
                             c.underflow != got.count.underflow ||
                             c.subnormal != got.count.subnormal
                         ? 1u
                         : 0u;
        different += got.sum.error2 != static_cast<double>(want.error2) ? 1u : 0u;
        different += got.sum.max_error != static_cast<double>(want.most) ? 1u : 0u;
    }
    CHECK(different == 0);
    if (r.select != mx::codec::four_over_six::none) {
        CHECK(fours > 20);
        CHECK(fours < 190);
    }
}

}  // namespace

TEST_CASE("blocks under scales that are no powers of two are those of exact integers") {
    std::uint64_t stream = 100;
    for (const char* preset : {"nvfp4:", "nvfp4:scale=single-level,", "fp8_1x128:block=1x16,",
                               "fp8_1x128:block=1x16,scale=amax-pow2,"}) {
        for (const char* element : {"e2m1", "e4m3", "e5m2", "e3m2", "e2m3", "int8", "int4"}) {
            check_recipe(std::string(preset) + "element=" + element, stream += 10);
        }
    }
    for (const char* round :
         {"away", "zero", "up", "down", "nearest-ties-to-zero", "stochastic,seed=5",
          "stochastic,random_bits=8", "stochastic,random_bits=1"}) {
        check_recipe(std::string("nvfp4:round=") + round, stream += 10);
        check_recipe(std::string("fp8_1x128:block=1x16,round=") + round, stream += 10);
    }
}

TEST_CASE("four-over-six takes the scale with the smaller exact error") {
    std::uint64_t stream = 900;
    for (const char* measure : {"mse", "mae", "abs_max"}) {
        check_recipe(std::string("nvfp4:four_over_six=") + measure, stream += 10);
        check_recipe(std::string("nvfp4:round=stochastic,four_over_six=") + measure, stream += 10);
    }
}

namespace {

struct outcome {
    mx::block::block_stats stats;
    std::vector<std::uint8_t> codes;
    std::vector<float> values;
};

outcome run(const std::string& recipe, const std::vector<float>& x, float tensor_amax) {
    const block_params p =
        mx::codec::params_of(mx::codec::parse_recipe(recipe), {mx::base::bits_of(tensor_amax)});
    outcome o{{}, std::vector<std::uint8_t>(x.size()), std::vector<float>(x.size())};
    o.stats = mx::codec::measure_block(p, x, {}, o.codes, o.values);
    return o;
}

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("zeros, underflow, NaN and Inf under a tensor scale are what the documents say") {
    // A tensor of zeros: g = 1, scale 0, zeros of their sign.
    outcome o = run("nvfp4", {0.0f, -0.0f}, 0);
    CHECK(int{o.stats.scale_code} == 0);
    CHECK(o.codes == std::vector<std::uint8_t>{0, 8});
    CHECK(o.stats.is.zero);
    // In the arithmetic of torchao and modelopt it becomes NaN.
    for (const char* name : {"nvfp4:dialect=torchao", "nvfp4:dialect=modelopt"}) {
        o = run(name, {0.0f, -0.0f}, 0);
        CHECK(int{o.stats.scale_code} == 0x7f);
        CHECK(std::isnan(o.values[0]));
    }
    CHECK(run("nvfp4:dialect=te", {0.0f}, 0).stats.scale_code == 0);
    CHECK(run("nvfp4:dialect=compressed-tensors", {0.0f}, 0).stats.scale == 0.125f);

    // A block far below the tensor's maximum: its scale and its elements underflow.
    o = run("nvfp4", {1e-9f, -1e-9f}, 1.0f);
    CHECK(o.stats.scale == 0);
    CHECK(o.stats.count.underflow == 2);
    CHECK(o.stats.is.dead);
    CHECK(o.stats.sum.error2 == Approx(2e-18));
    // torchao does not let it.
    CHECK(run("nvfp4:dialect=torchao", {1e-9f, -1e-9f}, 1.0f).stats.scale == 0x1p-6f);

    // The smallest tensors: g is the smallest float32.
    o = run("nvfp4", {0x1p-149f, -0x1p-149f}, 0x1p-149f);
    CHECK(o.values == std::vector<float>{0x1p-149f, -0x1p-149f});

    for (const float bad : {not_a_number, infinite, -infinite}) {
        o = run("nvfp4", {1.0f, bad}, 1.0f);
        CHECK(int{o.stats.scale_code} == 0x7f);
        CHECK(o.stats.count.poisoned == 1);
        CHECK(o.stats.sum.x2 == 0);
        CHECK(std::isnan(o.values[0]));
        o = run("fp8_1x128", {1.0f, bad}, 0);
        CHECK(std::isnan(o.stats.scale));
        CHECK(int{o.stats.scale_code} == 255);
        CHECK(o.stats.count.poisoned == 1);
    }
    // te skips NaN and saturates Inf.
    o = run("nvfp4:dialect=te", {1.0f, not_a_number}, 1.0f);
    CHECK(o.stats.count.poisoned == 0);
    CHECK(o.codes == std::vector<std::uint8_t>{7, 7});
    CHECK(o.values[0] == Approx(1.0f));
    CHECK(o.stats.sum.x2 == 1);
    o = run("nvfp4:dialect=te", {0.001f, -infinite}, 1.0f);
    CHECK(int{o.stats.scale_code} == 0x7e);
    CHECK(o.codes == std::vector<std::uint8_t>{0, 15});
    o = run("fp8_1x128:dialect=te", {1.0f, infinite}, 0);
    CHECK(o.stats.scale == 1.0f);
    CHECK(o.codes == std::vector<std::uint8_t>{0x38, 0x7e});
}

TEST_CASE("FP8 block scales follow Transformer Engine at the ends of float32") {
    CHECK(run("fp8_1x128:dialect=te", {0.0f, 0.0f}, 0).stats.scale == 1.0f);
    // 448 / amax overflows and becomes the largest float32.
    CHECK(run("fp8_1x128:dialect=te", {0x1p-149f}, 0).stats.scale ==
          1.0f / std::numeric_limits<float>::max());
    // 448 / 3 = 149.33 is rounded down to 128, so the scale is 2^-7.
    CHECK(run("fp8_1x128:dialect=te,scale=amax-pow2", {3.0f}, 0).stats.scale == 0x1p-7f);
    CHECK(run("fp8_1x128:scale=amax-pow2", {3.0f}, 0).stats.scale == 0x1p-7f);
    CHECK(run("fp8_1x128:scale=amax-pow2", {448.0f}, 0).stats.scale == 1.0f);
    CHECK(run("fp8_1x128:scale=amax-pow2", {448.5f}, 0).stats.scale == 2.0f);
    CHECK(run("fp8_1x128", {0x1p-149f}, 0).stats.scale == 0x1p-149f);
}

TEST_CASE("ggml's UE4M3 conversion has the defects it has") {
    const auto code = [](float amax) {
        return int{run("nvfp4:dialect=ggml", {amax}, 0).stats.scale_code};
    };
    CHECK(code(6 * 247.0f) == 0x77);  // 240
    CHECK(code(6 * 248.0f) == 0x7e);  // 448, although 256 is nearest
    CHECK(code(6 * 300.0f) == 0x7e);
    CHECK(code(6 * 17.0f) == 0x59);       // a tie, up
    CHECK(code(6 * 0x1.ep-7f) == 7);      // 7.5 quanta end at 7
    CHECK(code(6 * 0.0009765626f) == 1);  // just above half a quantum
    CHECK(code(0.0f) == 0);
    // Far beyond 448 * 6 all distances round to the same number, and the first index is taken.
    CHECK(run("nvfp4:dialect=ggml", {1e20f}, 0).codes[0] == 0);
    CHECK(run("nvfp4:dialect=ggml", {-0.0f, -1.0f}, 0).codes[0] == 0);
}

TEST_CASE("a tensor scale from a file takes the place of the tensor's own") {
    block_params p = mx::codec::params_of(mx::codec::parse_recipe("nvfp4:dialect=te"));
    mx::codec::set_tensor_scale(p, 4.0f);
    CHECK(p.tensor.decode == 0.25f);
    p = mx::codec::params_of(mx::codec::parse_recipe("nvfp4"));
    mx::codec::set_tensor_scale(p, 4.0f);
    CHECK(p.tensor.decode == 4.0f);
    for (const float bad : {not_a_number, infinite, -1.0f}) {
        CHECK_THROWS(mx::codec::set_tensor_scale(p, bad));
    }
}
