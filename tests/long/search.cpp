// SPDX-License-Identifier: Apache-2.0
// Searched scales of more than 10^6 blocks, by the reference and by this machine's vector kernels,
// compared with a trial of every code in integers. Label `long`.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "libmx/codec/backends.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/format/decode.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx;
__extension__ using wide = __int128;

// Numbers are multiples of 2^-33 below 2^13: squared differences of a block fit 128 bits.
constexpr int unit = -33;

std::int64_t units(double x) { return std::llround(std::ldexp(x, -unit)); }

// Every scale that can be best, from the smallest up.
struct tried_scale {
    int code;
    std::int64_t values[8];  // of the magnitudes of E2M1, in units
};

std::vector<tried_scale> scales_of(const codec::block_params& p) {
    std::vector<tried_scale> out;
    const bool power = p.scale_format->power_of_two();
    // Under smaller powers of two all is clamped, under larger ones all is zero.
    const int first = power ? 127 - 24 : 1, last = power ? 127 + 8 : 126;
    for (int code = first; code <= last; ++code) {
        const double s = static_cast<double>(
            power ? base::exact_pow2f(code - 127)
                  : format::decode_scale(*p.scale_format, static_cast<unsigned>(code)));
        tried_scale t{code, {}};
        for (std::size_t m = 0; m < 8; ++m) {
            t.values[m] =
                units(s * static_cast<double>(p.tensor.decode) * static_cast<double>(p.value[m]));
        }
        out.push_back(t);
    }
    return out;
}

// The nearest number of the grid has the least difference, whichever way ties go.
wide error_under(const tried_scale& s, std::span<const float> x, bool squares) {
    wide sum = 0;
    for (const float v : x) {
        const std::int64_t magnitude = units(std::abs(static_cast<double>(v)));
        std::int64_t least = std::llabs(magnitude - s.values[0]);
        for (const std::int64_t value : s.values) {
            least = std::min<std::int64_t>(least, std::llabs(magnitude - value));
        }
        sum += squares ? static_cast<wide>(least) * least : static_cast<wide>(least);
    }
    return sum;
}

int best_of(const std::vector<tried_scale>& scales, std::span<const float> x, bool squares,
            int first, int reach) {
    int best = -1;
    wide least = 0;
    for (const tried_scale& s : scales) {
        if (std::abs(s.code - first) > reach) continue;
        const wide error = error_under(s, x, squares);
        if (best >= 0 && error > least) continue;
        best = s.code;
        least = error;
    }
    return best;
}

std::vector<std::uint8_t> codes_by(const char* backend, const codec::block_params& p,
                                   const std::vector<float>& x, std::uint64_t block) {
    const codec::recipe_request asked{&p, codec::detail::codes};
    const codec::placed_segment all{{1, 0, x.size(), 1, x.size(), 1, block}, 0, 0};
    const codec::backend& by =
        backend == std::string("best") ? codec::best_backend() : codec::backend_named(backend);
    std::vector<std::uint8_t> out;
    by.make_quantizer()->run(
        {{tensor::dtype::f32, reinterpret_cast<const std::byte*>(x.data()), x.size()}, 1, x.size()},
        {&all, 1}, {&asked, 1}, [&](std::size_t, std::span<const codec::segment_result> results) {
            const codec::block_results& d = results.front().of_blocks;
            out.assign(d.scale_code, d.scale_code + d.blocks);
        });
    return out;
}

// Normal, Laplace, and few-bit numbers, of which many errors are equal; the first of a block is at
// least 1.
std::vector<float> numbers(std::size_t count, std::size_t block, unsigned seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    std::exponential_distribution<double> exponential;
    std::vector<float> x;
    for (std::size_t i = 0; i < count; ++i) {
        double v = normal(random);
        if (seed % 3 == 1) v = random() % 2 == 0 ? exponential(random) : -exponential(random);
        if (seed % 3 == 2) v = static_cast<double>(random() % 16) / 4 - 2;
        if (i % block == 0 && std::abs(v) < 1) v = v < 0 ? v - 1 : v + 1;
        x.push_back(static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(v, 24)), -24)));
    }
    return x;
}

std::uint64_t count_differences(const std::string& text, std::size_t rows, unsigned seed) {
    const codec::recipe r = codec::parse_recipe(text);
    codec::recipe start = r;
    start.reach = 0;
    // Two-level: an outer scale of 16 bits or fewer, so that its products are whole units.
    const codec::block_params p = codec::params_of(r, {base::bits_of(2688.0f * 0x1.23p-9f)});
    const codec::block_params from = codec::params_of(start, {base::bits_of(2688.0f * 0x1.23p-9f)});
    const std::vector<tried_scale> scales = scales_of(p);
    const auto block = static_cast<std::size_t>(r.block.cols);
    const bool squares = r.measure == codec::search_measure::mse;
    std::uint64_t differences = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : differences)
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows); ++row) {
        const auto x = numbers(4096 * block, block, seed + static_cast<unsigned>(row));
        const auto reference = codes_by("scalar", p, x, block);
        const auto vectors = codes_by("best", p, x, block);
        const auto first = codes_by("scalar", from, x, block);
        for (std::size_t b = 0; b < reference.size(); ++b) {
            const int best =
                best_of(scales, std::span(x).subspan(b * block, block), squares, first[b], r.reach);
            differences += reference[b] != best || vectors[b] != best ? 1 : 0;
        }
    }
    return differences;
}

}  // namespace

TEST_CASE("searched scales are those that trying all of them finds") {
    unsigned seed = 1;
    for (const char* text :
         {"nvfp4:scale=search", "nvfp4:scale=search,search=mae", "nvfp4:scale=search-single-level",
          "nvfp4:scale=search-single-level,search=mae,reach=3", "mxfp4:scale=search",
          "mxfp4:scale=search,search=mae", "mxfp4:scale=search,reach=1"}) {
        CAPTURE(text);
        CHECK(count_differences(text, 36, seed) == 0);  // 147,456 blocks each
        seed += 100;
    }
}
