// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/torch_stream.hpp"

#include <bit>
#include <cmath>
#include <numbers>

namespace mx::lab {
namespace {

// PyTorch's compiler fuses each product with the sum it goes to, so that std::fma states its bits.

constexpr std::size_t group = torch_stream::least_normal;  // eight radii, then eight angles

// Cephes logf for 0 < x <= 1: x = m 2^e with m in [sqrt(1/2), sqrt(2)), a polynomial in m - 1, and
// e log 2 in two parts.
float cephes_log(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    auto e = static_cast<float>(static_cast<int>(bits >> 23) - 126);
    float m = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);
    if (m < std::numbers::sqrt2_v<float> / 2) {
        e -= 1;
        m = (m - 1) + m;
    } else {
        m -= 1;
    }
    const float square = m * m;
    float p = 7.0376836292e-2f;
    for (const float next :
         {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
          -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
        p = std::fma(p, m, next);
    }
    p = std::fma(p * m, square, e * -2.12194440e-4f);
    p -= square * 0.5f;
    return std::fma(e, 0.693359375f, m + p);
}

struct sine_and_cosine {
    float sine, cosine;
};

// Cephes sinf and cosf for 0 <= x: x less a multiple of pi / 2 in three parts, then a polynomial
// for each.
sine_and_cosine cephes_sine_and_cosine(float x) {
    const int octant = (static_cast<int>(x * 1.27323954473516f) + 1) & ~1;
    const auto y = static_cast<float>(octant);
    x = std::fma(y, -0.78515625f, x);
    x = std::fma(y, -2.4187564849853515625e-4f, x);
    x = std::fma(y, -3.77489497744594108e-8f, x);
    const float square = x * x;
    float even = 2.443315711809948e-5f;
    even = std::fma(even, square, -1.388731625493765e-3f);
    even = std::fma(even, square, 4.166664568298827e-2f);
    even = std::fma(even * square, square, -(square * 0.5f)) + 1;
    float odd = -1.9515295891e-4f;
    odd = std::fma(odd, square, 8.3321608736e-3f);
    odd = std::fma(odd, square, -1.6666654611e-1f);
    odd = std::fma(odd * square, x, x);
    const bool swapped = (octant & 2) != 0;
    const float sine = swapped ? even : odd, cosine = swapped ? odd : even;
    return {(octant & 4) != 0 ? -sine : sine, ((octant + 2) & 4) != 0 ? -cosine : cosine};
}

// Box and Muller's transformation of numbers uniform in [0, 1), in place.
void make_normal(float* x) {
    constexpr auto turn = static_cast<float>(2 * std::numbers::pi);
    for (std::size_t i = 0; i < group / 2; ++i) {
        float& radius = x[i];
        float& angle = x[i + group / 2];
        const float r = std::sqrt(-2 * cephes_log(1 - radius));
        const sine_and_cosine of = cephes_sine_and_cosine(turn * angle);
        radius = r * of.cosine;
        angle = r * of.sine;
    }
}

}  // namespace

float torch_stream::unit() { return static_cast<float>(engine_() & 0xffffffu) * 0x1p-24f; }

void torch_stream::uniform(double bound, std::span<float> x) {
    const auto from = static_cast<float>(-bound), to = static_cast<float>(bound);
    for (float& one : x) one = std::fma(unit(), to - from, from);
}

void torch_stream::normal(const execution_context& on, std::span<float> x) {
    for (float& one : x) one = unit();
    on.split(x.size() / group, 1024, [&](std::size_t begin, std::size_t end, int) {
        for (std::size_t i = begin; i < end; ++i) make_normal(x.data() + i * group);
    });
    if (x.size() % group == 0) return;
    const std::span<float> last = x.last(group);  // drawn again
    for (float& one : last) one = unit();
    make_normal(last.data());
}

void torch_stream::skip_normal(std::uint64_t count, std::size_t size) {
    engine_.discard(count * (size + (size % group == 0 ? 0 : group)));
}

}  // namespace mx::lab
