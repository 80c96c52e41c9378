// SPDX-License-Identifier: Apache-2.0
#include "apps/mx_capture/known_products.hpp"

#include <fmt/format.h>

#include <array>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/conformance/vectors/word_stream.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/gemm/terms.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;
using namespace conformance::verify;

// Enough for every position of a tile in an instruction's outputs.
constexpr std::uint64_t tiles_at_once = 64;

constexpr std::array<int, 5> elements{0, 1, -1, 2, -2};

// The code of an element.
std::uint32_t code_of(const gemm::operand_format& f, int element) {
    if (element == 0) return 0;
    const bool two = element == 2 || element == -2;
    const auto field = static_cast<std::uint32_t>(f.bias + (two ? 1 : 0));
    const std::uint32_t magnitude = field << (f.mantissa_bits + f.dropped_bits);
    return magnitude | (element < 0 ? 1u << (f.code_bits() - 1) : 0u);
}

// The code of 2^exponent.
std::uint8_t scale_code(const gemm::operand_scale& s, int exponent) {
    return static_cast<std::uint8_t>(s.format == "e8m0" ? 127 + exponent : (7 + exponent) << 3);
}

struct chooser {
    word_stream words;

    int element() { return elements[static_cast<std::size_t>(words.between(0, 4))]; }
    int exponent() { return static_cast<int>(words.between(0, 2)) - 1; }
    int accumulator() { return static_cast<int>(words.between(0, 200)) - 100; }
};

// The recording tests the sign of zeros.
bool same(std::uint32_t x, std::uint32_t y, bool f16) {
    const std::uint32_t magnitude = f16 ? 0x7fffu : 0x7fffffffu;
    return x == y || ((x | y) & magnitude) == 0;
}

std::vector<known_product> known_products_of(const mma_case& what) {
    std::vector<known_product> known;
    for (std::uint64_t t = 0; t < tiles_at_once; ++t) known.push_back(known_product_of(what, t));
    return known;
}

bool gives(device& d, const instruction& i, const mma_case& what,
           const std::vector<known_product>& known) {
    std::vector<mma_tile> stack;
    for (const known_product& k : known) stack.push_back(k.tile);
    const std::vector<std::uint32_t> got = d.multiply(i, what.steps, true, stack);
    for (std::size_t t = 0; t < known.size(); ++t) {
        for (std::size_t j = 0; j < mma_tile_outputs; ++j) {
            if (!same(got[t * mma_tile_outputs + j], known[t].d[j], what.f16)) return false;
        }
    }
    return true;
}

}  // namespace

known_product known_product_of(const mma_case& what, std::uint64_t index) {
    chooser choose{word_stream({index, base::tensor_id("known products")})};
    const std::size_t depth = what.depth();
    const std::size_t blocks = what.blocks();
    std::vector<int> a(mma_tile_rows * depth), b(mma_tile_cols * depth);
    std::vector<int> ea(mma_tile_rows * blocks), eb(mma_tile_cols * blocks);
    known_product k;
    for (int& x : a) k.tile.a.push_back(code_of(*what.a, x = choose.element()));
    for (int& x : b) k.tile.b.push_back(code_of(*what.b, x = choose.element()));
    for (int& e : ea) k.tile.sfa.push_back(scale_code(*what.scale, e = choose.exponent()));
    for (int& e : eb) k.tile.sfb.push_back(scale_code(*what.scale, e = choose.exponent()));
    for (std::size_t row = 0; row < mma_tile_rows; ++row) {
        for (std::size_t col = 0; col < mma_tile_cols; ++col) {
            const auto c = static_cast<float>(choose.accumulator());
            float sum = c;
            for (std::size_t n = 0; n < depth; ++n) {
                const std::size_t block = blocks == 0 ? 0 : n / what.scale->block;
                const int exponent =
                    blocks == 0 ? 0 : ea[row * blocks + block] + eb[col * blocks + block];
                sum += static_cast<float>(a[row * depth + n] * b[col * depth + n]) *
                       base::exact_pow2f(exponent);
            }
            const auto bits = [&](float x) {
                return what.f16 ? gemm::f16_from_f32(base::bits_of(x)) : base::bits_of(x);
            };
            k.tile.c.push_back(bits(c));
            k.d.push_back(bits(sum));
        }
    }
    return k;
}

std::string settle(instruction& i, const mma_case& what, device& d) {
    const std::vector<placement> places = placements_of(i);
    i.where = places.front();
    // Without a choice of placements, a wrong product is left to the recording.
    if (places.size() == 1) return to_string(i.where);
    const std::vector<known_product> known = known_products_of(what);
    std::string refused;
    for (const placement& p : places) {
        i.where = p;
        try {
            if (gives(d, i, what, known)) return to_string(p);
        } catch (const base::error& e) {
            // Another placement may work, unless the GPU no longer responds.
            if (refused.empty())
                refused = fmt::format("placement '{}': {}", to_string(p), e.what());
        }
    }
    i.where = places.front();
    if (!refused.empty()) throw base::error(base::error_kind::unavailable, refused);
    return std::string(no_placement);
}

void note_placement(instruction& i, const mma_case& what, device& d, recording& to) {
    to.metadata["placement"] = settle(i, what, d);
    to.metadata["known_products"] =
        gives(d, i, what, known_products_of(what)) ? known_products_given : known_products_missed;
    to.metadata["name"] = i.name;
    to.metadata["instruction"] = i.ptx;
}

}  // namespace mx::capture
