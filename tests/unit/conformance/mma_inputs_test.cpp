// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/mma_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/vectors/mma_tile_maker.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "tests/catch.hpp"

using namespace mx::conformance::vectors;
namespace gemm = mx::gemm;

namespace {

mma_case case_of(const char* format, std::size_t k, const gemm::operand_scale* scale = nullptr,
                 std::size_t steps = 1) {
    const gemm::operand_format* f = gemm::find_operand_format(format);
    return {f, f, scale, false, k, steps};
}

const gemm::operand_scale* e8m0_32() { return gemm::find_operand_scale("e8m0", 32); }
const gemm::operand_scale* ue4m3_16() { return gemm::find_operand_scale("ue4m3", 16); }

std::vector<mma_case> cases() {
    std::vector<mma_case> all{case_of("bf16", 16), case_of("f16", 16), case_of("tf32", 8),
                              case_of("bf16", 16, nullptr, 8)};
    for (const char* f : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
        all.push_back(case_of(f, 32));
        all.push_back(case_of(f, 32, e8m0_32()));
    }
    all.push_back(case_of("e2m1", 64, e8m0_32(), 8));
    all.push_back(case_of("e2m1", 64, ue4m3_16()));
    mma_case half = case_of("e5m2", 32);
    half.f16 = true;
    all.push_back(half);
    return all;
}

mma_tile tile_of(const mma_case& what, const char* distribution, std::uint64_t index) {
    return generate_mma_tile(what, *find_mma_distribution(distribution), 1, index);
}

// The exact value of a code of a wide format.
double value_of(const gemm::operand_format& f, std::uint32_t code) {
    if (f.name == "bf16") return mx::base::float_from_bits(code << 16);
    if (f.code_bits() == 32) return mx::base::float_from_bits(code);
    return mx::format::decode(*mx::format::find_element_format(f.name), code);
}

double product(const mma_case& what, const mma_tile& t, std::size_t row, std::size_t col,
               std::size_t k) {
    return value_of(*what.a, t.a[row * what.depth() + k]) *
           value_of(*what.b, t.b[col * what.depth() + k]);
}

}  // namespace

TEST_CASE("tiles depend on seed, case, distribution and index, and on nothing else") {
    const mma_case what = case_of("e4m3", 32, e8m0_32());
    const mma_tile one = tile_of(what, "finite", 7);
    tile_of(what, "gauss", 3);
    CHECK(hash_of(one, 7) == hash_of(tile_of(what, "finite", 7), 7));
    CHECK(hash_of(one, 7) != hash_of(tile_of(what, "finite", 8), 7));
    CHECK(hash_of(one, 7) != hash_of(tile_of(what, "discard", 7), 7));
    CHECK(hash_of(one, 7) !=
          hash_of(generate_mma_tile(what, *find_mma_distribution("finite"), 2, 7), 7));
    mma_tile turned = one;
    turned.c[0] ^= 1u;
    CHECK(hash_of(turned, 7) != hash_of(one, 7));
}

// Another value means that recordings made before can no longer be verified: then
// mma_inputs_version has to change with it.
TEST_CASE("the inputs of a seed stay what they are") {
    std::uint64_t sum = 0;
    for (const mma_case& what : cases()) {
        for (const mma_distribution& d : mma_distributions()) {
            if (d.probes != nullptr && d.probes(what) == 0) continue;
            for (std::uint64_t i = 0; i < 3; ++i) {
                sum = sum * 3 + hash_of(generate_mma_tile(what, d, 1, i), i);
            }
        }
    }
    CHECK(mma_inputs_version == "mma-inputs/1");
    CHECK(sum == 0x8eb2b2f258f7a673u);
}

TEST_CASE("codes fit their formats, and only bits holds specials in its operands") {
    for (const mma_case& what : cases()) {
        for (const mma_distribution& d : mma_distributions()) {
            if (d.probes != nullptr && d.probes(what) == 0) continue;
            INFO(what.a->name << " " << d.name);
            for (std::uint64_t i = 0; i < 8; ++i) {
                const mma_tile t = generate_mma_tile(what, d, 1, i);
                CHECK(t.a.size() == mma_tile_rows * what.depth());
                CHECK(t.b.size() == mma_tile_cols * what.depth());
                CHECK(t.sfa.size() == mma_tile_rows * what.blocks());
                const auto too_wide = [&](std::uint32_t code) {
                    return what.a->code_bits() < 32 && code >> what.a->code_bits() != 0;
                };
                CHECK(std::none_of(t.a.begin(), t.a.end(), too_wide));
                const auto special = [&](std::uint32_t code) { return is_special(*what.a, code); };
                if (d.name != "bits") CHECK(std::none_of(t.a.begin(), t.a.end(), special));
            }
        }
    }
}

TEST_CASE("bits has specials and outputs that are numbers, and every scale code") {
    const mma_case what = case_of("e5m2", 32, e8m0_32());
    const gemm::accumulator& model = *gemm::find_accumulator("sm100.mxf8f6f4");
    std::size_t specials = 0, nans = 0, outputs = 0;
    std::set<int> scales;
    for (std::uint64_t i = 0; i < 40; ++i) {
        const mma_tile t = tile_of(what, "bits", i);
        for (const std::uint32_t code : t.a) specials += is_special(*what.a, code) ? 1 : 0;
        scales.insert(t.sfa.begin(), t.sfa.end());
        for (const std::uint32_t d : multiply_tile(what, t, true, model)) {
            nans += d == 0x7fffffffu ? 1 : 0;
            ++outputs;
        }
    }
    CHECK(specials > 10);
    CHECK(scales.size() > 200);
    CHECK(nans > outputs / 100);
    CHECK(nans < outputs / 2);
}

TEST_CASE("cancel: pairs add up to nothing") {
    for (const char* format : {"bf16", "e4m3", "e2m1"}) {
        const mma_case what = case_of(format, format[0] == 'b' ? 16 : 32);
        const mma_tile t = tile_of(what, "cancel", 0);
        for (std::size_t k = 0; k + 4 < what.depth(); k += 2) {
            CHECK(product(what, t, 3, 5, k) + product(what, t, 3, 5, k + 1) == 0.0);
        }
    }
}

TEST_CASE("wide: products spread over more binades than an accumulator keeps") {
    const mma_case what = case_of("bf16", 16);
    int least = 1000, most = -1000;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const mma_tile t = tile_of(what, "wide", i);
        for (std::size_t k = 0; k < what.depth(); ++k) {
            const int e = std::ilogb(product(what, t, 0, 0, k));
            least = std::min(least, e);
            most = std::max(most, e);
        }
    }
    CHECK(most - least > 30);
}

TEST_CASE("tiny: zeros of both signs and subnormal codes") {
    const mma_case what = case_of("e4m3", 32);
    std::set<std::uint32_t> codes;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const mma_tile t = tile_of(what, "tiny", i);
        codes.insert(t.a.begin(), t.a.end());
    }
    CHECK(codes.count(0x00) == 1);
    CHECK(codes.count(0x80) == 1);
    CHECK(codes.count(0x01) == 1);
    CHECK(*std::max_element(codes.begin(), codes.end()) <= 0x8f);
}

TEST_CASE("huge: some sums are beyond the largest number, of operands that are not") {
    for (const mma_case& what : {case_of("bf16", 16), case_of("e4m3", 32, e8m0_32())}) {
        const gemm::accumulator& model =
            *gemm::find_accumulator(what.scale == nullptr ? "sm100.f16" : "sm100.mxf8f6f4");
        std::size_t infinite = 0, finite = 0;
        for (std::uint64_t i = 0; i < 8; ++i) {
            for (const std::uint32_t d :
                 multiply_tile(what, tile_of(what, "huge", i), true, model)) {
                ((d & 0x7fffffffu) >= 0x7f800000u ? infinite : finite) += 1;
            }
        }
        CHECK(infinite > 50);
        CHECK(finite > 50);
    }
}

TEST_CASE("align: the two largest products cancel") {
    const mma_case what = case_of("bf16", 16);
    for (std::uint64_t i = 0; i < 16; ++i) {
        const mma_tile t = tile_of(what, "align", i);
        std::vector<double> products;
        for (std::size_t k = 0; k < what.depth(); ++k)
            products.push_back(product(what, t, 2, 1, k));
        std::sort(products.begin(), products.end(),
                  [](double x, double y) { return std::fabs(x) > std::fabs(y); });
        CHECK(products[0] != 0.0);
        CHECK(products[0] + products[1] == 0.0);
    }
}

TEST_CASE("floor: products around 2^-149 on c = 0, where formats reach so far") {
    for (const mma_case& what : {case_of("bf16", 16), case_of("e4m3", 32, e8m0_32())}) {
        const mma_tile t = tile_of(what, "floor", 0);
        CHECK(std::all_of(t.c.begin(), t.c.end(), [](std::uint32_t c) { return c == 0; }));
        std::size_t below = 0, above = 0;
        for (std::size_t k = 0; k < what.depth(); ++k) {
            double p = product(what, t, 0, 0, k);
            if (what.scale != nullptr) {
                p = std::ldexp(p, static_cast<int>(t.sfa[0]) + static_cast<int>(t.sfb[0]) - 254);
            }
            if (p == 0.0) continue;
            CHECK(std::ilogb(p) > -185);
            CHECK(std::ilogb(p) < -110);
            (std::ilogb(p) < -149 ? below : above) += 1;
        }
        CHECK(below + above > 0);
    }
}

TEST_CASE("probes: what they are named for") {
    SECTION("every pair of scale codes") {
        const mma_case what = case_of("e2m1", 64, ue4m3_16());
        const mma_distribution& d = *find_mma_distribution("probe_scales");
        std::set<int> pairs;
        for (std::uint64_t i = 0; i < d.probes(what); ++i) {
            const mma_tile t = generate_mma_tile(what, d, 1, i);
            std::size_t k = 0;
            while (t.a[k] == 0) ++k;
            for (std::size_t row = 0; row < mma_tile_rows; ++row) {
                for (std::size_t col = 0; col < mma_tile_cols; ++col) {
                    pairs.insert(t.sfa[row * 4 + k / 16] * 256 + t.sfb[col * 4 + k / 16]);
                }
            }
        }
        CHECK(pairs.size() == 65536);
    }
    SECTION("NaN scales over zeros") {
        const mma_case what = case_of("e4m3", 32, e8m0_32());
        const mma_tile t = tile_of(what, "probe_nan_scale", 0);
        CHECK(std::count(t.sfa.begin(), t.sfa.end(), 255) > 0);
        CHECK(std::all_of(t.a.begin(), t.a.end(), [](std::uint32_t a) { return a == 0; }));
    }
    SECTION("the bits kept below the alignment exponent decide an output") {
        const mma_case what = case_of("bf16", 16);
        gemm::accumulator more = *gemm::find_accumulator("sm100.f16");
        more.fraction_bits += 1;
        const gemm::accumulator& model = *gemm::find_accumulator("sm100.f16");
        for (const std::uint64_t i : {0u, 1u}) {
            const mma_tile t = tile_of(what, "probe_alignment", i);
            CHECK(multiply_tile(what, t, true, model) != multiply_tile(what, t, true, more));
        }
    }
    SECTION("the alignment of subnormal operands decides an output") {
        const mma_case what = case_of("e4m3", 32);
        gemm::accumulator other = *gemm::find_accumulator("sm100.f8f6f4");
        other.subnormals = gemm::subnormal_alignment::leading_bit;
        bool differs = false;
        for (std::uint64_t i = 0; i < 8; ++i) {
            const mma_tile t = tile_of(what, "probe_subnormal", i);
            differs = differs ||
                      multiply_tile(what, t, true, other) !=
                          multiply_tile(what, t, true, *gemm::find_accumulator("sm100.f8f6f4"));
        }
        CHECK(differs);
    }
    SECTION("the alignment floor decides an output") {
        const mma_case what = case_of("bf16", 16);
        gemm::accumulator other = *gemm::find_accumulator("sm100.f16");
        other.exponent_floor = -126;
        bool differs = false;
        for (std::uint64_t i = 0; i < 8; ++i) {
            const mma_tile t = tile_of(what, "probe_floor", i);
            differs =
                differs || multiply_tile(what, t, true, other) !=
                               multiply_tile(what, t, true, *gemm::find_accumulator("sm100.f16"));
        }
        CHECK(differs);
    }
    SECTION("a group that cancels decides an output") {
        const mma_case what = case_of("e2m1", 64, ue4m3_16());
        const gemm::accumulator& model = *gemm::find_accumulator("sm100.mxf4nvf4");
        const mma_tile cancels = tile_of(what, "probe_group", 0);
        mma_tile empty = cancels;
        for (std::size_t row = 0; row < mma_tile_rows; ++row) {
            for (std::size_t k = 0; k < 16; ++k) empty.a[row * 64 + k] = 0;
        }
        gemm::accumulator fewer = model;
        fewer.fraction_bits = 8;
        CHECK(multiply_tile(what, cancels, true, fewer) != multiply_tile(what, empty, true, fewer));
    }
    SECTION("zeros on c of both signs") {
        const mma_case what = case_of("e4m3", 32);
        std::set<std::uint32_t> c;
        for (std::uint64_t i = 0; i < 8; ++i) {
            const mma_tile t = tile_of(what, "probe_zeros", i);
            c.insert(t.c.begin(), t.c.end());
        }
        CHECK(c == std::set<std::uint32_t>{0u, 0x80000000u});
    }
    SECTION("underflow of both signs") {
        const mma_case what = case_of("bf16", 16);
        const auto d = multiply_tile(what, tile_of(what, "probe_underflow", 0), true,
                                     *gemm::find_accumulator("sm100.f16"));
        CHECK(std::count(d.begin(), d.end(), 0x80000000u) > 0);
        CHECK(std::count(d.begin(), d.end(), 0u) > 0);
    }
}
