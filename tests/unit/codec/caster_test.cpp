// SPDX-License-Identifier: Apache-2.0
// Casts by table against casts value by value.
#include <array>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/recipe.hpp"
#include "tests/catch.hpp"

namespace {

namespace codec = mx::codec;
namespace format = mx::format;
using mx::tensor::dtype;

// Every upper half of a float32, with lower halves at the ends and inside of the classes of a
// table.
std::vector<std::uint32_t> all_classes() {
    std::vector<std::uint32_t> x;
    for (std::uint32_t upper = 0; upper < 0x10000u; ++upper) {
        for (const std::uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu}) {
            x.push_back(upper << 16 | lower);
        }
    }
    return x;
}

struct outcome {
    std::vector<std::uint8_t> codes;
    std::vector<float> values;
    std::size_t without_code;
};

outcome cast_all(const codec::element_cast& to, dtype type, const void* data, std::size_t count,
                 codec::caster& by) {
    outcome o{std::vector<std::uint8_t>(count), std::vector<float>(count), 0};
    const codec::stored_values values{type, static_cast<const std::byte*>(data), count};
    o.without_code = by.cast(to, {values, count, 0, {}}, {o.codes.data(), o.values.data()});
    return o;
}
outcome cast_all(const codec::element_cast& to, dtype type, const void* data, std::size_t count) {
    return cast_all(to, type, data, count, *codec::make_host_caster());
}

std::size_t differences(const codec::element_cast& to, const std::vector<std::uint32_t>& bits,
                        const outcome& got) {
    std::size_t different = 0;
    for (std::size_t i = 0; i < bits.size(); ++i) {
        const codec::converted c = codec::cast_element(to, bits[i], 0);
        const bool same = static_cast<std::uint8_t>(c.code) == got.codes[i] &&
                          mx::base::bits_of(c.value) == mx::base::bits_of(got.values[i]);
        different += same ? 0u : 1u;
    }
    return different;
}

}  // namespace

TEST_CASE("a table casts float32 as the conversion does, value by value") {
    const std::vector<std::uint32_t> bits = all_classes();
    const codec::dialect& ocp = codec::row_of(codec::dialect_id::ocp);
    for (const format::element_format& f : format::element_formats) {
        for (const format::rounding_row& rounding : format::roundings) {
            if (rounding.id == format::rounding::stochastic) continue;
            format::rounding_mode mode;
            mode.how = rounding.id;
            const bool saturate = rounding.id != format::rounding::away;
            const codec::element_cast to{codec::conversion_of(ocp, f, mode, saturate, false),
                                         false};
            CAPTURE(f.name, rounding.name);
            const outcome got = cast_all(to, dtype::f32, bits.data(), bits.size());
            CHECK(got.without_code == bits.size());
            CHECK(differences(to, bits, got) == 0);
        }
    }
    for (const format::rounding how : {format::rounding::up, format::rounding::zero}) {
        const codec::element_cast to = codec::cast_to_e8m0(ocp, how, true);
        CHECK(differences(to, bits, cast_all(to, dtype::f32, bits.data(), bits.size())) == 0);
    }
}

TEST_CASE("a table of 16-bit values holds for every dialect", "[slow]") {
    // Twice all of bfloat16: enough to justify a table.
    std::vector<std::uint16_t> words(0x20000);
    std::vector<std::uint32_t> bits(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = static_cast<std::uint16_t>(i);
        bits[i] = static_cast<std::uint32_t>(words[i]) << 16;
    }
    std::size_t compared = 0, without = 0;
    for (const codec::dialect& by : codec::dialects()) {
        for (const format::element_format& f : format::element_formats) {
            try {
                const codec::element_cast to{codec::conversion_of(by, f, {}, true, false), false};
                const outcome got = cast_all(to, dtype::bf16, words.data(), words.size());
                CAPTURE(by.name, f.name);
                CHECK(differences(to, bits, got) == 0);
                std::size_t first = 0;
                while (first < bits.size() && codec::cast_element(to, bits[first], 0).code >= 0) {
                    ++first;
                }
                CHECK(got.without_code == first);
                ++compared;
                without += first < bits.size() ? 1u : 0u;
            } catch (const mx::base::error& e) {
                REQUIRE(e.kind() == mx::base::error_kind::usage);  // a dialect without this format
            }
        }
    }
    CHECK(compared > 60);
    CHECK(without > 0);
}

TEST_CASE("vector kernels cast as the conversion does, value by value", "[slow]") {
    // NaN, Inf and numbers beyond the largest, which kernels leave out, are spread over all.
    std::vector<std::uint32_t> bits = all_classes();
    std::vector<std::uint16_t> words(0x10000 - 5);  // the last vector is not full
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = static_cast<std::uint16_t>(i * 40503u);
    }
    std::vector<std::uint32_t> widened(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
        widened[i] = static_cast<std::uint32_t>(words[i]) << 16;
    }
    const codec::dialect& ocp = codec::row_of(codec::dialect_id::ocp);
    std::size_t by_vectors = 0;
    for (const codec::backend& b : codec::backends()) {
        if (!b.available() || b.is_device() || b.takes_cast == nullptr) continue;
        for (const format::element_format& f : format::element_formats) {
            for (const format::rounding_row& rounding : format::roundings) {
                for (const bool saturate : {true, false}) {
                    format::rounding_mode mode;
                    mode.how = rounding.id;
                    const bool full = rounding.id == format::rounding::up;
                    const codec::element_cast to{codec::conversion_of(ocp, f, mode, saturate, full),
                                                 false};
                    if (!b.takes_cast(to)) continue;
                    ++by_vectors;
                    CAPTURE(b.name, f.name, rounding.name, saturate);
                    const auto caster = b.make_caster(nullptr);
                    CHECK(differences(
                              to, widened,
                              cast_all(to, dtype::bf16, words.data(), words.size(), *caster)) == 0);
                    const outcome wide =
                        cast_all(to, dtype::f32, bits.data(), bits.size(), *caster);
                    CHECK(differences(to, bits, wide) == 0);
                    CHECK(wide.without_code == bits.size());
                }
            }
        }
        codec::element_cast to{
            codec::conversion_of(ocp, *format::find_element_format("e4m3"), {}, true, false),
            false};
        CHECK(b.takes_cast(to));
        to.number.mode.how = format::rounding::stochastic;
        CHECK(!b.takes_cast(to));
    }
    if (&codec::best_backend() != &codec::backends().front()) CHECK(by_vectors > 80);
}
