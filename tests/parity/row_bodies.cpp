// SPDX-License-Identifier: Apache-2.0
// The body with one lane per block on the host: with its own rounding, and with the emulation of a
// device's conversion instructions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "libmx/codec/backends.hpp"
#include "libmx/codec/cuda/nvfp4_body.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_values.hpp"
#include "libmx/codec/ocp_block.hpp"
#include "libmx/format/cast.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/host_device/host_quantizer.hpp"
#include "tests/host_device/ocp_on_host.hpp"
#include "tests/parity/device_cases.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace codec = mx::codec;
namespace cuda = mx::codec::cuda;
namespace base = mx::base;

std::string nothing_missing() { return {}; }
// A device with large panels; it is never measured.
std::unique_ptr<codec::device_meter> no_meter() { return nullptr; }

const std::array backends{
    codec::backend{{"rows", "rounding by arithmetic", nothing_missing, true},
                   cuda::make_host_quantizer,
                   codec::make_host_caster,
                   no_meter},
    codec::backend{{"instructions", "rounding by the stand-in", nothing_missing, true},
                   cuda::make_instruction_quantizer,
                   codec::make_host_caster,
                   no_meter}};

// Counts the blocks that rows leave to the steps of the reference, whose segments are in a list.
std::uint64_t marked = 0, blocks = 0;

void counted_start(const cuda::launch& l, base::cuda::stream& on) {
    static_cast<base::cuda::host_stream&>(on).queue([l] {
        cuda::ocp_on_host<cuda::grid_converter>(l);
        cuda::dialects_on_host(l);
        std::vector<std::uint32_t> listed, expected;
        cuda::for_each_marked(l, 0, 1,
                              [&](std::uint32_t, std::uint32_t s) { listed.push_back(s); });
        for (std::uint32_t s = 0; s < l.segment_count; ++s) {
            const std::uint64_t before = marked;
            const std::uint32_t own = cuda::blocks_of(l.segments[s]);
            for (std::uint32_t b = 0; b < own; ++b) {
                const std::uint16_t word = cuda::marks_of(l, 0, s)[b / cuda::blocks_per_mark];
                marked += word >> b % cuda::blocks_per_mark & 1u;
            }
            if (marked != before) expected.push_back(s);
            blocks += own;
        }
        std::ranges::sort(listed);
        CHECK(listed == expected);
    });
}

std::unique_ptr<codec::quantizer> make_counted() {
    static base::cuda::host_device one;
    return cuda::make_device_quantizer(one, counted_start);
}

const codec::backend counted{
    {"counted", "rows, with the marked blocks counted", nothing_missing, true},
    make_counted,
    codec::make_host_caster,
    no_meter};

// Normally distributed values, then changed by `change(element, bits)`, bits in the upper
// half for bf16.
template <typename Change>
mx::tests::stored_matrix changed(mx::tensor::dtype type, Change change) {
    const auto& f = *mx::format::find_element_format("e2m1");
    auto m = mx::tests::make_matrix(type, 3, 32 * 41, {mx::tests::block_kind::gaussian}, f, 5);
    const std::size_t size = type == mx::tensor::dtype::f32 ? 4 : 2;
    for (std::size_t i = 0; i < m.bytes.size() / size; ++i) {
        std::uint32_t bits = 0;
        std::byte* const at = m.bytes.data() + i * size;
        std::memcpy(reinterpret_cast<std::byte*>(&bits) + (4 - size), at, size);
        change(i, bits);
        std::memcpy(at, reinterpret_cast<std::byte*>(&bits) + (4 - size), size);
    }
    return m;
}

}  // namespace

TEST_CASE("blocks that rows leave to the steps of the reference") {
    using mx::tensor::dtype;
    for (const dtype type : {dtype::f32, dtype::bf16}) {
        // From 2^-1 to 1.
        const auto one_binade = [](std::uint32_t bits) {
            return (bits & 0x807fffffu) | 0x3f000000u;
        };
        for (const char* text :
             {"mxfp4", "mxfp8", "mxfp8:element=e5m2,scale=rceil", "nvfp4", "nvfp4:dialect=te"}) {
            const codec::recipe r = codec::parse_recipe(text);
            const auto size = static_cast<std::size_t>(r.block.cols);
            // An Inf, a NaN, a subnormal number, or numbers too far apart in every block.
            const auto all = changed(type, [&](std::size_t i, std::uint32_t& bits) {
                constexpr std::array<std::uint32_t, 4> first{0x7f800000u, 0xffc00000u, 0x00010000u,
                                                             0x20000000u};
                bits = i % size == 0 ? first[i / size % 4] : one_binade(bits);
            });
            const auto none =
                changed(type, [&](std::size_t, std::uint32_t& bits) { bits = one_binade(bits); });
            // Every other block is too small for the sums of its warp.
            const auto half = changed(type, [&](std::size_t i, std::uint32_t& bits) {
                bits = one_binade(bits) - (i / size % 2 == 0 ? 40u << 23 : 0u);
            });
            for (const auto wanted : {codec::detail::none, codec::detail::codes}) {
                if (size == 16 && wanted != codec::detail::none) continue;  // another body
                const auto same = [&](const mx::tests::stored_matrix& m) {
                    marked = blocks = 0;
                    const auto expected = mx::tests::everything(*mx::tests::backends_here().front(),
                                                                m, r, wanted, false);
                    return mx::tests::everything(counted, m, r, wanted, false) == expected;
                };
                CAPTURE(text, static_cast<int>(type), static_cast<int>(wanted));
                CHECK(same(all));
                CHECK(blocks == 3 * 32 * 41 / size);
                CHECK(marked == blocks);
                CHECK(same(half));
                CHECK(marked == (blocks + 1) / 2);
                CHECK(same(none));
                CHECK(marked == 0);
            }
        }
    }
}

TEST_CASE("rows of any magnitude leave the bytes of the reference") {
    using mx::tensor::dtype;
    const codec::backend& reference = *mx::tests::backends_here().front();
    for (const char* text : {"mxfp8:element=e5m2", "mxfp8", "mxfp4", "nvfp4"}) {
        const codec::recipe r = codec::parse_recipe(text);
        for (const dtype type : {dtype::bf16, dtype::f32}) {
            for (std::uint32_t exponent = 1; exponent < 254; ++exponent) {
                const auto m = changed(type, [&](std::size_t, std::uint32_t& bits) {
                    bits = (bits & 0x807fffffu) | exponent << 23;
                });
                const auto expected =
                    mx::tests::everything(reference, m, r, codec::detail::none, false);
                CAPTURE(text, static_cast<int>(type), exponent);
                const bool same = mx::tests::everything(backends.front(), m, r, codec::detail::none,
                                                        false) == expected;
                CHECK(same);
            }
        }
    }
}

TEST_CASE("a lane for a block leaves the bytes of the reference") {
    for (const codec::backend& d : backends) {
        std::size_t compared = 0;
        mx::tests::compare_rows(d, [&](const std::string& what, const std::string& difference) {
            CAPTURE(d.name, what);
            CHECK(difference == "");
            ++compared;
        });
        CHECK(compared > 800);
    }
}

TEST_CASE("a lane for a block of NVFP4 leaves the bytes of the reference") {
    std::size_t compared = 0;
    mx::tests::compare_numbers(backends.front(),
                               [&](const std::string& what, const std::string& difference) {
                                   CAPTURE(what);
                                   CHECK(difference == "");
                                   ++compared;
                               });
    CHECK(compared == 1239);
}

TEST_CASE("NVFP4 has a body of its own, under dialects whose values are products of scales") {
    const auto takes = [](const char* text, float tensor_scale = 1) {
        codec::block_params p =
            codec::params_of(codec::parse_recipe(text), {base::bits_of(1000.0f)});
        p.tensor.decode = tensor_scale;
        const auto size = static_cast<std::uint64_t>(codec::parse_recipe(text).block.cols);
        return cuda::takes_nvfp4(p, 1, size);
    };
    for (const char* text : {"nvfp4", "nvfp4:scale=single-level", "nvfp4:round=zero",
                             "nvfp4:dialect=torchao", "nvfp4:dialect=torchao@0.15",
                             "nvfp4:dialect=te", "nvfp4:dialect=modelopt", "nvfp4:block=1x7"}) {
        CAPTURE(text);
        CHECK(takes(text));
        CHECK_FALSE(takes(text, 0));
        CHECK_FALSE(takes(text, 0x1p-60f));
        CHECK_FALSE(takes(text, 0x1p60f));
    }
    for (const char* text :
         {"mxfp4", "nvfp4:scale_format=ue5m3", "nvfp4:element=e1m2", "nvfp4:block=1x32",
          "nvfp4:round=stochastic", "nvfp4:round=up", "nvfp4:four_over_six=mse",
          "nvfp4:scale=search", "nvfp4:dialect=ggml,scale=single-level",
          "nvfp4:dialect=compressed-tensors", "fp8_1x128:block=1x16",
          "mxfp4:dialect=torchao,block=1x16"}) {
        CAPTURE(text);
        CHECK_FALSE(takes(text));
    }
}

TEST_CASE("blocks of NVFP4 that numbers of 32 bits cannot hold are left to other steps") {
    const auto fits = [](const char* text, float tensor_scale, float most, float least) {
        codec::block_params p =
            codec::params_of(codec::parse_recipe(text), {base::bits_of(1000.0f)});
        codec::set_tensor_scale(p, tensor_scale);
        cuda::nvfp4_recipe r{};
        for (std::uint32_t i = 0; i < cuda::limits_of_table; ++i) find_limit(p, i, r.limits);
        r.tensor_scale = tensor_scale;
        return cuda::detail::scale_of(r, base::bits_of(most), base::bits_of(least)).fits;
    };
    constexpr float inf = std::numeric_limits<float>::infinity();
    CHECK(fits("nvfp4", 1, 6, 6));
    CHECK(fits("nvfp4", 1, 0, 0));
    CHECK(fits("nvfp4", 1, 6, 0x1p-17f));
    CHECK_FALSE(fits("nvfp4", 1, 6, 0x1.fp-18f));
    CHECK(fits("nvfp4", 0x1p-40f, std::numeric_limits<float>::max(), 0x1p127f));
    CHECK_FALSE(fits("nvfp4", 1, inf, 1));
    CHECK_FALSE(fits("nvfp4", 1, base::quiet_nan(), 1));
    CHECK(fits("nvfp4", 1, 0x1p-7f, 0x1p-7f));
    CHECK_FALSE(fits("nvfp4", 1, 0x1p-8f, 0x1p-8f));  // the scale is zero
    CHECK(fits("nvfp4:dialect=modelopt", 1, 2700, 1));
    CHECK_FALSE(fits("nvfp4:dialect=modelopt", 1, 2800, 1));  // it is NaN
    // The smallest scale of a dialect, however small the block.
    CHECK(fits("nvfp4:dialect=torchao", 1, 0x1p-39f, 0x1p-39f));
    CHECK_FALSE(fits("nvfp4:dialect=torchao", 1, 0x1p-42f, 0x1p-42f));
    CHECK(fits("nvfp4:dialect=torchao", 0x1p-40f, 0x1p-78f, 0x1p-78f));
    CHECK_FALSE(fits("nvfp4:dialect=torchao", 0x1p-40f, 0x1p-100f, 0x1p-100f));
}

TEST_CASE("limits of scale 0, which nothing writes, are not copied either") {
    cuda::nvfp4_table table{};
    cuda::dialect_recipe from{};
    from.nvfp4 = &table;
    cuda::nvfp4_recipe r{};
    r.limits.element[0][cuda::nvfp4_table::clamp] = 7;
    r.limits.element[1][0] = 7;
    r.copy<cuda::bf16_block<cuda::nvfp4_size>>(from, 0, 1);
    CHECK(r.limits.element[0][cuda::nvfp4_table::clamp] == 7);
    CHECK(r.limits.element[1][0] == 0);
}

TEST_CASE("limits say what scales and the encoder say of every number") {
    for (const char* text :
         {"nvfp4", "nvfp4:round=away", "nvfp4:round=nearest-ties-to-zero", "nvfp4:round=zero",
          "nvfp4:dialect=torchao", "nvfp4:dialect=torchao@0.15", "nvfp4:dialect=te",
          "nvfp4:dialect=modelopt"}) {
        for (const float g : {1.0f, 0x1p-9f, 0.0007f, 3.1e-7f, 40000.0f}) {
            codec::block_params p =
                codec::params_of(codec::parse_recipe(text), {base::bits_of(1000.0f)});
            const bool reciprocal = p.by->two_level.value == codec::two_level_kind::te;
            codec::set_tensor_scale(p, reciprocal ? 1 / g : g);
            cuda::nvfp4_table table{};
            for (std::uint32_t i = 0; i < cuda::limits_of_table; ++i) {
                cuda::find_limit(p, i, table);
            }
            CAPTURE(text, g);
            std::uint64_t different = 0, elements = 0;
            const auto agrees = [&](std::uint32_t largest) {
                const std::uint32_t code = codec::choose_scale(p, largest, p.largest).code;
                different += cuda::detail::scale_code_of(table, largest) == code ? 0u : 1u;
                return code;
            };
            std::uint32_t before = 0;
            // Every bf16 maximum in the range that rows take, and the neighbours of limits.
            for (std::uint32_t bits = 28u << 23; bits < 227u << 23; bits += 0x10000u) {
                const std::uint32_t code = agrees(bits);
                if (code == 0 || code == 127 || code == before) continue;
                before = code;
                if (table.scale[code] > 1) {
                    agrees(table.scale[code] - 1);
                    agrees(table.scale[code]);
                }
                const codec::float_scale_encoder encoder(p,
                                                         codec::choose_scale(p, bits, p.largest));
                const auto& limit = table.element[code];
                const auto one = [&](std::uint32_t x) {
                    const auto e = encoder.encode(base::float_from_bits(x), 0);
                    const bool same =
                        cuda::detail::nvfp4_code(limit, x) == e.magnitude &&
                        (x >= limit[cuda::nvfp4_table::overflow]) == e.exact.beyond_max &&
                        (x >= limit[cuda::nvfp4_table::clamp]) == (e.exact.unbounded > 7);
                    different += same ? 0u : 1u;
                    ++elements;
                };
                for (const std::uint32_t l : limit) {
                    for (std::uint32_t d = 0; d < 7; ++d) one(l + d - 3);
                }
                for (std::uint32_t x = bits - (6u << 23); x < bits + (4u << 23); x += 0x8000u)
                    one(x);
            }
            CHECK(different == 0);
            CHECK(elements > 100000);
        }
    }
}

TEST_CASE("recipes of rows have their body, and no others") {
    const auto body = [](const char* text, std::uint64_t rows, std::uint64_t cols) {
        return cuda::body_of(codec::params_of(codec::parse_recipe(text)), rows, cols);
    };
    for (const std::string_view format : cuda::row_formats) {
        const std::string text = "mxfp8:element=" + std::string(format);
        CHECK(body(text.c_str(), 1, 32) == cuda::row_body_of(format));
        CHECK(body((text + ",round=away").c_str(), 1, 32) == cuda::segment_body);
        CHECK(body((text + ",offset=fp16").c_str(), 1, 32) == cuda::segment_body);
        CHECK(body(text.c_str(), 1, 33) == cuda::segment_body);
        CHECK(body(text.c_str(), 2, 16) == cuda::segment_body);
    }
    // A device's instructions for all formats leave nothing of any body of rows.
    std::uint32_t all = 0;
    for (const std::string_view format : cuda::row_formats) {
        const std::uint32_t own = cuda::with_codes(1u << cuda::row_body_of(format));
        CHECK((all & own) == 0);
        all |= own;
    }
    CHECK(all == cuda::with_codes(cuda::row_bodies));
    CHECK((all & 1u << cuda::segment_body) == 0);
    CHECK(body("mxint8", 1, 32) == cuda::segment_body);
    CHECK(body("mxfp4_e3m0", 1, 32) == cuda::segment_body);
}

// Eight at a time in 32 bits: sixteen of the largest would not fit.
TEST_CASE("the sum of a block's largest bf16 is exact") {
    using sums = cuda::row_sums<cuda::bf16_block<cuda::row_size>, 5>;
    for (const std::int64_t sign : {1, -1}) {
        const std::int64_t y = sign * 255 << (cuda::row_grid::place_bits + 1 - 7);
        sums block;
        for (int i = 0; i < cuda::row_size; ++i) block.add(static_cast<float>(y), 0);
        sums::totals totals{};
        block.add_to(totals, {3, 3, 1});
        CHECK(totals.x == 32 * y << 3);
        CHECK(totals.d == 0);
        CHECK(totals.x2.low == static_cast<std::uint64_t>(y * y) << 11);
        CHECK(totals.x2.high == (y * y) >> 53);
        CHECK(totals.d2.low == 0);
        CHECK(totals.d2.high == 0);
        CHECK(totals.xd.low == 0);
        CHECK(totals.xd.high == 0);
    }
}

TEST_CASE("bounds and the rounding by arithmetic say what the encoder says of every number") {
    for (const std::string_view name : cuda::row_formats) {
        const codec::recipe r = codec::parse_recipe("mxfp8:element=" + std::string(name));
        const codec::block_params p = codec::params_of(r);
        const cuda::row_grid g = cuda::row_grid_of(p);
        std::uint64_t different = 0, compared = 0;
        const auto one = [&](std::uint32_t bits, int exponent) {
            const float ones = base::float_from_bits(bits) * base::exact_pow2f(-exponent);
            const float y = ones * g.per_unit;
            const std::uint32_t magnitude = bits & base::f32_magnitude_mask;
            // Blocks that the body leaves to the steps of the reference.
            if (magnitude == 0 || !(std::abs(ones) >= 0x1p-60f && std::abs(y) < g.far)) return;
            const auto e = mx::format::encode_magnitude(p.element, {}, bits, exponent, 0);
            const auto code = mx::format::with_sign(p.element, e.magnitude, e.negative);
            const auto reaches = [&](std::uint32_t from) {
                return (base::bits_of(y) & base::f32_magnitude_mask) >= from;
            };
            const bool same =
                cuda::rounded(g, y) == p.value[code] * g.per_unit && cuda::code_of(g, y) == code &&
                mx::format::cast_code(p.element, {}, base::bits_of(ones), true, 0) == code &&
                reaches(g.bounds.kept) == (e.magnitude != 0) &&
                reaches(g.bounds.normal) == (e.magnitude >= p.element.smallest_normal) &&
                reaches(g.bounds.top) == (e.magnitude == p.element.max_positive) &&
                reaches(g.bounds.overflow) == e.beyond_max &&
                reaches(g.bounds.clamp) == (e.unbounded > p.element.max_positive);
            different += same ? 0u : 1u;
            ++compared;
        };
        // All bf16 under every scale of the body.
        for (int exponent = -126; exponent <= 126; ++exponent) {
            for (std::uint32_t h = 0; h < 0x8000u; ++h) {
                one((h | (h * 40503u & 0x8000u)) << 16, exponent);
            }
        }
        // float32: every exponent, a step without a common pattern, and all neighbours of numbers
        // with few bits.
        for (std::uint64_t x = 0; x < 0x100000000u; x += 4099) {
            one(static_cast<std::uint32_t>(x), 0);
        }
        for (std::uint32_t h = 0; h < 0x10000u; ++h) {
            for (std::uint32_t d = 0; d < 5; ++d) one((h << 16) + d - 2, h % 2 == 0 ? 0 : -9);
        }
        CAPTURE(name);
        CHECK(different == 0);
        CHECK(compared > 2000000);
    }
}
