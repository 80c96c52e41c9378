// SPDX-License-Identifier: Apache-2.0
#include "libmx/transform/rotation.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "tests/catch.hpp"
#include "tests/naive_rotation.hpp"

using namespace mx;
using transform::kind;
using transform::rotation;
using transform::run;

namespace {

using floats = std::vector<float>;

// Numbers of many magnitudes, so that another order of additions shows.
floats numbers(std::size_t count, std::uint64_t seed) {
    floats x;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t u = base::random_u32({seed, 7}, i);
        const auto mantissa = static_cast<float>(static_cast<std::int32_t>(u)) * 0x1p-31f;
        x.push_back(std::ldexp(mantissa, static_cast<int>(u % 13) - 6));
    }
    return x;
}

floats integers(std::size_t count, std::uint64_t seed) {
    floats x;
    for (std::size_t i = 0; i < count; ++i) {
        x.push_back(static_cast<float>(base::random_u32({seed, 8}, i) % 201) - 100);
    }
    return x;
}

bool same_bits(const floats& a, const floats& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (base::bits_of(a[i]) != base::bits_of(b[i])) return false;
    }
    return true;
}

floats rotated(const rotation& r, floats x) {
    transform::rotate(r, {x.data(), 1, x.size(), x.size()}, run::row);
    return x;
}

floats rotated_back(const rotation& r, floats x) {
    transform::rotate_back(r, {x.data(), 1, x.size(), x.size()}, run::row);
    return x;
}

double norm(const floats& x, std::size_t first, std::size_t count) {
    double sum = 0;
    for (std::size_t i = first; i < first + count; ++i) {
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    }
    return std::sqrt(sum);
}

}  // namespace

TEST_CASE("rotations have the bits of a recursion over halves, for every length of a run") {
    for (const kind what : {kind::hadamard, kind::random_hadamard}) {
        for (const int size : transform::sizes) {
            const rotation r{what, size, 5};
            for (std::size_t length = 1; length < 300; ++length) {
                CAPTURE(size, length);
                const floats x = numbers(length, length);
                REQUIRE(same_bits(rotated(r, x), tests::naive_run(r, x)));
            }
        }
    }
}

TEST_CASE("columns and rows of any width are rotated alike, and nothing beside them") {
    const std::size_t stride = 61;
    for (const int size : transform::sizes) {
        for (const std::size_t rows : {1u, 7u, 47u, 130u}) {
            for (const std::size_t cols : {1u, 15u, 16u, 37u, 53u}) {
                for (const bool down : {false, true}) {
                    CAPTURE(size, rows, cols, down);
                    const rotation r{kind::random_hadamard, size, 2};
                    const floats x = numbers(rows * cols, rows + cols);
                    floats wide(rows * stride, 77.0f);
                    for (std::size_t i = 0; i < x.size(); ++i) {
                        wide[i / cols * stride + i % cols] = x[i];
                    }
                    const transform::float_rows view{wide.data(), rows, cols, stride};
                    transform::rotate(r, view, down ? run::column : run::row);
                    const floats want = tests::naive_rotation(r, x, 1, rows, cols, down);
                    bool same = true;
                    for (std::size_t i = 0; i < wide.size(); ++i) {
                        const bool inside = i % stride < cols;
                        const float wanted = inside ? want[i / stride * cols + i % stride] : 77.0f;
                        same = same && base::bits_of(wide[i]) == base::bits_of(wanted);
                    }
                    REQUIRE(same);
                    // And the way back, column by column and all at once.
                    floats packed = want;
                    transform::rotate_back(r, {packed.data(), rows, cols, cols},
                                           down ? run::column : run::row);
                    for (std::size_t c = 0; down && c < cols; ++c) {
                        floats column;
                        for (std::size_t i = 0; i < rows; ++i) column.push_back(want[i * cols + c]);
                        column = rotated_back(r, column);
                        for (std::size_t i = 0; i < rows; ++i) {
                            REQUIRE(base::bits_of(column[i]) ==
                                    base::bits_of(packed[i * cols + c]));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("the matrix is Sylvester's, symmetric and orthogonal to within its factor") {
    for (const int size : transform::sizes) {
        const auto n = static_cast<std::size_t>(size);
        const float f = transform::factor_of(n);
        CHECK(std::abs(static_cast<double>(f) * f * size - 1) <= 0x1p-23);
        CHECK(f == static_cast<float>(1 / std::sqrt(static_cast<double>(size))));
        for (std::size_t i = 0; i < n; ++i) {
            floats unit(n);
            unit[i] = 1;
            const floats column = rotated({kind::hadamard, size, 0}, unit);
            for (std::size_t j = 0; j < n; ++j) {
                // -1 where the indices share an odd number of bits.
                const float want = std::popcount(i & j) % 2 == 0 ? f : -f;
                REQUIRE(column[j] == want);
            }
        }
    }
    CHECK(transform::factor_of(64) == 0.125f);
    CHECK(transform::factor_of(1) == 1.0f);
}

TEST_CASE("the way back gives the bits again where the way there was exact") {
    // Pieces of 64, 16, 4 and 1: their factors are powers of two.
    for (const int size : {16, 64}) {
        for (const std::size_t length : {64u, 128u, 16u, 4u, 1u, 149u, 213u}) {
            if (size == 16 && length % 16 != 0 && length % 16 != 5 && length > 4) continue;
            for (const kind what : {kind::hadamard, kind::random_hadamard}) {
                CAPTURE(size, length);
                const rotation r{what, size, 9};
                const floats x = integers(length, length);
                const floats y = rotated(r, x);
                CHECK(same_bits(rotated_back(r, y), x));
                if (length > 4) CHECK_FALSE(same_bits(y, x));
            }
        }
    }
}

TEST_CASE("elsewhere the way back is as close as the rounding on the way there") {
    double worst = 0;
    for (const int size : transform::sizes) {
        const auto n = static_cast<std::size_t>(size);
        const rotation r{kind::random_hadamard, size, 3};
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            const floats x = numbers(n, seed);
            const floats y = rotated(r, x);
            floats error = rotated_back(r, y);
            for (std::size_t i = 0; i < n; ++i) error[i] -= x[i];
            const double bound = (std::log2(size) + 2) * 0x1p-24;
            const double part = norm(error, 0, n) / (bound * norm(x, 0, n));
            worst = std::max(worst, part);
            // Lengths stay, to within the same bound.
            CHECK(std::abs(norm(y, 0, n) / norm(x, 0, n) - 1) <= bound);
        }
    }
    CAPTURE(worst);
    CHECK(worst <= 1);
    CHECK(worst > 0.01);
}

TEST_CASE("signs follow the seed, are those of the position, and cancel in a product") {
    const floats first = transform::signs_of({kind::random_hadamard, 128, 0});
    const floats second = transform::signs_of({kind::random_hadamard, 128, 1});
    std::size_t differ = 0, minus = 0;
    for (std::size_t i = 0; i < 128; ++i) {
        differ += first[i] != second[i] ? 1u : 0u;
        minus += first[i] < 0 ? 1u : 0u;
        CHECK(std::abs(first[i]) == 1);
    }
    CHECK(differ > 40);
    CHECK(differ < 88);
    CHECK(minus > 40);
    CHECK(minus < 88);
    const floats shorter = transform::signs_of({kind::random_hadamard, 16, 0});
    CHECK(same_bits(shorter, {first.begin(), first.begin() + 16}));
    CHECK(transform::signs_of({kind::hadamard, 16, 0}) == floats(16, 1.0f));

    const rotation r{kind::random_hadamard, 32, 11};
    const floats a = integers(1000, 1), b = integers(1000, 2);
    const floats ra = rotated(r, a), rb = rotated(r, b);
    double plain = 0, turned = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        plain += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        turned += static_cast<double>(ra[i]) * static_cast<double>(rb[i]);
    }
    CHECK(turned == Approx(plain).margin(1e-6 * norm(a, 0, 1000) * norm(b, 0, 1000)));
}

TEST_CASE("NaN and Inf stay in their group, and a NaN has one form") {
    const float nan = base::float_from_bits(0xffc12345u);
    const float inf = std::numeric_limits<float>::infinity();
    const rotation r{kind::hadamard, 16, 0};
    for (const float special : {nan, inf}) {
        floats x(48, 1.0f);
        x[20] = special;
        const floats y = rotated(r, x);
        for (std::size_t i = 0; i < 48; ++i) {
            const bool group = i >= 16 && i < 32;
            CHECK(std::isfinite(y[i]) == !group);
            if (group && std::isnan(y[i])) CHECK(base::bits_of(y[i]) == 0x7fc00000u);
        }
        const floats back = rotated_back(r, y);
        // Only where it stood, an Inf meets no Inf of the other sign.
        for (std::size_t i = 16; i < 32; ++i) {
            const bool is_inf = i == 20 && special == inf;
            CHECK(base::bits_of(back[i]) == (is_inf ? 0x7f800000u : 0x7fc00000u));
        }
        for (std::size_t i = 0; i < 16; ++i) CHECK(back[i] == 1);
    }
    // Zeros come back as +0, also behind a sign.
    const floats zeros(16, -0.0f);
    const rotation s{kind::random_hadamard, 16, 1};
    CHECK(same_bits(rotated_back(s, rotated(s, zeros)), floats(16, 0.0f)));
}
