// SPDX-License-Identifier: Apache-2.0
// The body with a lane for a block, run by the host: with its own rounding, and with what stands
// for the device's converting instructions.
#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "libmx/format/cast.hpp"
#include "libmx/pipeline/analyze_matrix.hpp"
#include "libmx/quantize/cuda/cuda_driver.hpp"
#include "libmx/quantize/cuda/host_batch.hpp"
#include "libmx/quantize/cuda/one_segment.hpp"
#include "libmx/quantize/cuda/row_formats.hpp"
#include "libmx/quantize/plain_block.hpp"
#include "tests/catch.hpp"
#include "tests/parity/segments.hpp"

namespace {

namespace quantize = mx::quantize;
namespace cuda = mx::quantize::cuda;
namespace base = mx::base;
using mx::tensor::dtype;

bool always() { return true; }

template <std::unique_ptr<quantize::segment_batch> (*make)()>
mx::block::segment_stats by_host(const quantize::block_params& p, quantize::block_run& run,
                                 quantize::block_details& details) {
    static const auto batch = make();
    return cuda::one_segment(*batch, p, run, details);
}

const std::array drivers{
    quantize::driver{"rows", "rounding by arithmetic", always, cuda::load,
                     by_host<cuda::make_host_batch>, cuda::takes, nullptr, cuda::make_host_batch},
    quantize::driver{"instructions", "rounding by the stand-in", always, cuda::load,
                     by_host<cuda::make_instruction_batch>, cuda::takes, nullptr,
                     cuda::make_instruction_batch}};

// Normal numbers with a sprinkle of zeros, as trained weights have, and rows of a wide range, where
// float32 cannot hold a sum of errors.
mx::tests::stored_matrix weights(dtype type, std::uint64_t rows, std::uint64_t cols) {
    mx::tests::stored_matrix m{type, rows, cols, {}};
    std::mt19937_64 random(3);
    std::normal_distribution<float> normal;
    for (std::uint64_t i = 0; i < rows * cols; ++i) {
        float x = normal(random) * 0.02f;
        const std::uint64_t row = i / cols;
        if (row % 5 == 1) x = std::ldexp(x, -static_cast<int>(random() % 24));
        if (row % 5 == 2 && random() % 7 == 0) x = 0;
        if (row % 5 == 3) x = std::ldexp(x, -100);
        const std::uint32_t bits = base::bits_of(x);
        const auto high = static_cast<std::uint16_t>(bits >> 16);
        const std::uint16_t half = base::half_saturated(x);
        const void* const from = type == dtype::f32    ? static_cast<const void*>(&x)
                                 : type == dtype::bf16 ? static_cast<const void*>(&high)
                                                       : static_cast<const void*>(&half);
        const std::size_t size = type == dtype::f32 ? 4 : 2;
        m.bytes.resize(m.bytes.size() + size);
        std::memcpy(m.bytes.data() + m.bytes.size() - size, from, size);
    }
    return m;
}

std::vector<quantize::recipe> recipes() {
    std::vector<quantize::recipe> all;
    for (const std::string_view format : cuda::row_formats) {
        for (const auto& rule : mx::scale::scale_rules) {
            if (rule.scale_format != "e8m0" || !mx::scale::is_step(rule.id)) continue;
            for (const char* block : {"", ",block=1x16", ",block=1x7"}) {
                all.push_back(quantize::parse_recipe("mxfp8:element=" + std::string(format) +
                                                     ",scale=" + std::string(rule.name) + block));
            }
        }
    }
    return all;
}

}  // namespace

TEST_CASE("a lane for a block leaves the bytes of the reference, segment by segment") {
    const std::vector<mx::tests::block_kind> kinds(mx::tests::block_kinds.begin(),
                                                   mx::tests::block_kinds.end());
    std::uint64_t turn = 0;
    for (const quantize::recipe& r : recipes()) {
        const quantize::block_params p = quantize::params_of(r);
        REQUIRE(cuda::body_of(p, 1, static_cast<std::uint64_t>(r.block.cols)) !=
                cuda::segment_body);
        for (const dtype type : {dtype::bf16, dtype::f32, dtype::f16}) {
            // Rows that begin at sixteen bytes, and rows that do not.
            const std::uint64_t cols = turn++ % 2 == 0 ? 32 * 40 : 32 * 40 + 9;
            const auto blocks = make_matrix(type, 3, cols, kinds, *r.element, 100 + turn);
            const auto trained = weights(type, 5, cols);
            for (const mx::tests::stored_matrix* m : {&blocks, &trained}) {
                const auto expected = mx::tests::everything(*mx::tests::drivers_here().front(), *m,
                                                            r, quantize::detail::none, false);
                for (const quantize::driver& d : drivers) {
                    CAPTURE(quantize::to_string(r), d.name, mx::tensor::row_of(type).name, cols,
                            m == &trained);
                    CHECK(mx::tests::everything(d, *m, r, quantize::detail::none, false) ==
                          expected);
                }
            }
        }
    }
}

TEST_CASE("a lane for a block leaves the figures of the reference, panel by panel") {
    const auto all = recipes();
    for (const dtype type : {dtype::bf16, dtype::f32}) {
        for (const auto& [rows, cols] : {std::pair{300, 1100}, {77, 64}, {5000, 40}, {3, 33000}}) {
            const auto m =
                weights(type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
            const mx::pipeline::matrix in{type, m.bytes.data(), m.rows, m.cols, "name"};
            // Some of every kind, beside one that another body takes.
            std::vector<quantize::recipe> some{quantize::parse_recipe("mxfp4:round=stochastic")};
            for (std::size_t i = 0; i < all.size(); i += 11) some.push_back(all[i]);
            mx::pipeline::run_control control;
            control.threads = 1;
            control.driver = mx::tests::drivers_here().front();
            const auto expected = analyze_matrix(in, some, false, control, false);
            for (const quantize::driver& d : drivers) {
                control.driver = &d;
                const auto got = analyze_matrix(in, some, false, control, false);
                for (std::size_t r = 0; r < some.size(); ++r) {
                    CAPTURE(quantize::to_string(some[r]), d.name, rows, cols);
                    const mx::metrics::totals& a = got[r].totals;
                    const mx::metrics::totals& b = expected[r].totals;
                    CHECK(std::memcmp(&a.count, &b.count, sizeof a.count) == 0);
                    CHECK(std::memcmp(&a.block, &b.block, sizeof a.block) == 0);
                    CHECK(a.sum.error2 == b.sum.error2);
                    CHECK(a.sum.x2 == b.sum.x2);
                    CHECK(a.sum.xd == b.sum.xd);
                    CHECK(a.sum.d2 == b.sum.d2);
                    CHECK(a.sum.error == b.sum.error);
                    CHECK(a.max_error == b.max_error);
                    CHECK(a.max_x == b.max_x);
                }
            }
        }
    }
}

TEST_CASE("bounds and the rounding by arithmetic say what the encoder says of every number") {
    for (const std::string_view name : cuda::row_formats) {
        const quantize::recipe r = quantize::parse_recipe("mxfp8:element=" + std::string(name));
        const quantize::block_params p = quantize::params_of(r);
        const cuda::row_grid g = cuda::row_grid_of(p);
        std::uint64_t different = 0, compared = 0;
        const auto one = [&](std::uint32_t bits, int exponent) {
            const float y = base::float_from_bits(bits) * base::exact_pow2f(-exponent);
            const std::uint32_t magnitude = bits & base::f32_magnitude_mask;
            // What the body sends to the steps of the reference.
            if (magnitude == 0 || !(std::abs(y) >= 0x1p-60f && std::abs(y) < g.far)) return;
            const auto e = mx::format::encode_magnitude(p.element, {}, bits, exponent, 0);
            const auto code = mx::format::with_sign(p.element, e.magnitude, e.negative);
            const auto reaches = [&](std::uint32_t from) {
                return (base::bits_of(y) & base::f32_magnitude_mask) >= from;
            };
            const bool same =
                cuda::rounded(g, y) == p.value[code] &&
                mx::format::cast_code(p.element, {}, base::bits_of(y), true, 0) == code &&
                reaches(g.kept) == (e.magnitude != 0) &&
                reaches(g.normal) == (e.magnitude >= p.element.smallest_normal) &&
                reaches(g.top) == (e.magnitude == p.element.max_positive) &&
                reaches(g.overflow) == e.beyond_max &&
                reaches(g.clamp) == (e.unbounded > p.element.max_positive);
            different += same ? 0u : 1u;
            ++compared;
        };
        // All bf16 under every scale of the body.
        for (int exponent = -126; exponent <= 126; ++exponent) {
            for (std::uint32_t h = 0; h < 0x8000u; ++h) {
                one((h | (h * 40503u & 0x8000u)) << 16, exponent);
            }
        }
        // float32: every exponent, a step that meets no pattern, and all neighbours of what has few
        // bits.
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
