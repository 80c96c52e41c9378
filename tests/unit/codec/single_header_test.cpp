// SPDX-License-Identifier: Apache-2.0
// mx_formats.hpp, assembled by cmake/mx_single_header.cmake, against the library.
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "mx_formats.hpp"
#include "tests/catch.hpp"

namespace single = mx_formats;
using namespace mx;

namespace {

constexpr std::size_t block_size = 32;

// Blocks of any bits, and of magnitudes of a few binades as weights have them.
std::vector<std::array<float, block_size>> blocks() {
    std::mt19937 random(11);
    std::vector<std::array<float, block_size>> all(60);
    for (std::size_t b = 0; b < all.size(); ++b) {
        for (float& x : all[b]) {
            const auto word = static_cast<std::uint32_t>(random());
            x = b % 3 == 0 ? base::float_from_bits(word & 0xff7fffffu)
                           : std::ldexp(static_cast<float>(word % 511) - 255.0f,
                                        static_cast<int>(b) - 160 + static_cast<int>(word >> 28));
        }
    }
    all[0] = {};
    all[3][5] = std::numeric_limits<float>::quiet_NaN();
    all[6][31] = -std::numeric_limits<float>::infinity();
    all[9].fill(std::numeric_limits<float>::max());
    return all;
}

std::vector<std::string> rules() {
    std::vector<std::string> names;
    for (const scale::scale_rule& r : scale::scale_rules) {
        const bool drawn = scale::is_random(r);
        if (r.scale_format == "e8m0" && r.step != nullptr && !drawn && !scale::is_search(r.id)) {
            names.emplace_back(r.name);
        }
    }
    return names;
}

bool equal(float a, float b) {
    return base::bits_of(a) == base::bits_of(b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

TEST_CASE("the single header decodes every code of every format as the library does") {
    REQUIRE(single::format::element_formats.size() == format::element_formats.size());
    for (const format::element_format& f : format::element_formats) {
        const auto* own = single::format::find_element_format(f.name);
        REQUIRE(own != nullptr);
        for (std::uint32_t code = 0; code < 256; ++code) {
            CAPTURE(f.name, code);
            CHECK(equal(single::format::decode(*own, code), format::decode(f, code)));
        }
    }
    REQUIRE(single::format::scale_formats.size() == format::scale_formats.size());
    for (const format::scale_format& f : format::scale_formats) {
        const auto* own = single::format::find_scale_format(f.name);
        REQUIRE(own != nullptr);
        for (std::uint32_t code = 0; code < 256 && f.has_codes(); ++code) {
            CAPTURE(f.name, code);
            CHECK(equal(single::format::decode_scale(*own, code), format::decode_scale(f, code)));
        }
    }
}

TEST_CASE("the single header quantizes blocks as the library does") {
    const auto all = blocks();
    const std::vector<std::string> names = rules();
    REQUIRE(names.size() == 8);
    for (const format::element_format& f : format::element_formats) {
        const auto* own = single::format::find_element_format(f.name);
        for (const std::string& rule : names) {
            for (const format::rounding_row& round : format::roundings) {
                const std::string text = "mxfp8:element=" + std::string(f.name) + ",scale=" + rule +
                                         ",round=" + std::string(round.name);
                const codec::recipe r = codec::parse_recipe(text);
                const codec::block_params p = codec::params_of(r);
                REQUIRE(p.ocp);
                const auto step = single::scale::step_under(*single::scale::find_scale_rule(rule),
                                                            *own, single::scale::int_emax::zero);
                const single::format::rounding_mode mode{
                    single::format::find_rounding(round.name)->id, single::format::tie_rule::up,
                    r.random_bits};
                const auto params =
                    single::format::params_of(*own, r.minimum == codec::int_min::full);
                for (const auto& x : all) {
                    std::array<std::uint8_t, block_size> codes, theirs;
                    std::array<std::uint32_t, block_size> draws;
                    for (std::size_t i = 0; i < block_size; ++i) {
                        draws[i] = base::random_u32({r.seed, 7}, i);
                    }
                    std::array<float, block_size> values;
                    const auto s = codec::quantize_block(
                        p, x, {.tensor_id = 7, .cols = static_cast<int>(block_size)}, theirs,
                        values);
                    const int scale = single::scale::quantize_power_block(
                        params, mode, step, x.data(), static_cast<int>(block_size), codes.data(),
                        draws.data());
                    CAPTURE(text, scale);
                    REQUIRE(scale == s.scale_code);
                    REQUIRE(codes == theirs);
                    for (std::size_t i = 0; i < block_size; ++i) {
                        REQUIRE(equal(single::scale::dequantize_code(*own, codes[i], scale),
                                      values[i]));
                    }
                }
            }
        }
    }
}

TEST_CASE("the single header converts values as the library does") {
    std::mt19937 random(3);
    for (int i = 0; i < 20000; ++i) {
        const auto x = static_cast<std::uint32_t>(random());
        const auto draw = static_cast<std::uint32_t>(random());
        for (const format::element_format& f : format::element_formats) {
            const auto& round = format::roundings[static_cast<std::size_t>(i) % 7];
            const bool saturate = i % 2 == 0;
            const auto* own = single::format::find_element_format(f.name);
            const auto mode = single::format::find_rounding(round.name)->id;
            REQUIRE(single::format::cast_code(single::format::params_of(*own, false), {mode}, x,
                                              saturate, draw) ==
                    format::cast_code(format::params_of(f, false), {round.id}, x, saturate, draw));
        }
    }
}
