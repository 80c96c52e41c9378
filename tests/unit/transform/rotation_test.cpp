// SPDX-License-Identifier: Apache-2.0
#include "libmx/transform/rotation.hpp"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/transform/simd/turns.hpp"
#include "tests/catch.hpp"
#include "tests/naive_rotation.hpp"

using namespace mx;
using transform::kind;
using transform::rotation;
using transform::run;

namespace {

using floats = std::vector<float>;

constexpr int powers[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr int others[] = {12, 20, 24, 48, 160, 768, 1280};

std::vector<int> all_sizes() {
    std::vector<int> all(std::begin(powers), std::end(powers));
    all.insert(all.end(), std::begin(others), std::end(others));
    return all;
}

// Numbers of many magnitudes, so that another order of additions changes results.
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

// A file of this text.
class text_file {
  public:
    explicit text_file(const std::string& text) { std::ofstream(path()) << text; }
    text_file(const text_file&) = delete;
    text_file& operator=(const text_file&) = delete;
    ~text_file() { std::filesystem::remove(path()); }
    std::string path() const {
        const auto folder = std::filesystem::temp_directory_path();
        return folder / ("mx-matrix-" + std::to_string(::getpid()) + "-" + std::to_string(number_));
    }

  private:
    static inline int files = 0;
    int number_ = ++files;
};

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
        for (const int size : all_sizes()) {
            const rotation r{what, size, 5, {}};
            const std::size_t step = size < 256 ? 1 : 37;
            const std::size_t end = size < 256 ? 300 : 2600;
            for (std::size_t length = 1; length < end; length += step) {
                CAPTURE(size, length);
                const floats x = numbers(length, length);
                REQUIRE(same_bits(rotated(r, x), tests::naive_run(r, x)));
            }
        }
    }
}

TEST_CASE("columns and rows of any width are rotated alike, and nothing beside them") {
    const std::size_t stride = 61;
    for (const int size : {16, 128, 12, 40}) {
        for (const std::size_t rows : {1u, 7u, 47u, 130u}) {
            for (const std::size_t cols : {1u, 15u, 16u, 37u, 53u}) {
                for (const bool down : {false, true}) {
                    CAPTURE(size, rows, cols, down);
                    const rotation r{kind::random_hadamard, size, 2, {}};
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
                    // The inverse, column by column and all at once.
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

TEST_CASE("every instruction set turns groups as the portable code does") {
    using base::simd::target;
    const std::size_t stride = 61;
    const float nan = base::float_from_bits(0xffc12345u);
    int compared = 0;
    for (const target t : {target::sse4, target::avx2, target::avx512, target::neon}) {
        const transform::simd::turns kernels = transform::simd::turns_for(t);
        if (kernels.there == nullptr || !base::simd::supported(t)) continue;
        ++compared;
        for (const std::size_t size : {1, 2, 4, 8, 16, 32, 128, 1024}) {
            const floats signs =
                transform::signs_of({kind::random_hadamard, static_cast<int>(size), 4, {}});
            for (const run along : {run::row, run::column}) {
                for (const std::size_t runs : {1u, 5u, 16u, 39u}) {
                    const std::size_t length = size < 16 ? 7 * size : size < 1024 ? 3 * size : size;
                    const bool row = along == run::row;
                    const std::size_t step = row ? length + 3 : stride;
                    floats x = numbers((row ? runs : length) * step, size + runs);
                    for (std::size_t i = 11; i < x.size(); i += 97) x[i] = i % 2 == 0 ? nan : -0.0f;
                    for (const bool back : {false, true}) {
                        CAPTURE(static_cast<int>(t), size, row, runs, back);
                        floats wanted = x, got = x;
                        const auto groups_of = [&](floats& v) {
                            return transform::simd::groups{
                                {v.data(), row ? runs : length, row ? length : runs, step},
                                along,
                                size,
                                1,
                                signs.data()};
                        };
                        const auto& portable = transform::simd::portable_turns;
                        (back ? portable.back : portable.there)(groups_of(wanted));
                        (back ? kernels.back : kernels.there)(groups_of(got));
                        REQUIRE(same_bits(got, wanted));
                    }
                }
            }
        }
    }
    CHECK(compared > 0);
}

TEST_CASE("the matrix is Sylvester's, symmetric and orthogonal to within its factor") {
    for (const int size : powers) {
        const auto n = static_cast<std::size_t>(size);
        const float f = transform::factor_of(n);
        CHECK(std::abs(static_cast<double>(f) * f * size - 1) <= 0x1p-23);
        CHECK(f == static_cast<float>(1 / std::sqrt(static_cast<double>(size))));
        for (std::size_t i = 0; i < n; ++i) {
            floats unit(n);
            unit[i] = 1;
            const floats column = rotated({kind::hadamard, size, 0, {}}, unit);
            for (std::size_t j = 0; j < n; ++j) {
                // -1 if the indices share an odd number of bits.
                const float want = std::popcount(i & j) % 2 == 0 ? f : -f;
                REQUIRE(column[j] == want);
            }
        }
    }
    CHECK(transform::factor_of(64) == 0.125f);
    CHECK(transform::factor_of(1) == 1.0f);
}

TEST_CASE("Paley's matrices are orthogonal, and other sizes have none") {
    for (const std::size_t b : {std::size_t{12}, std::size_t{20}}) {
        for (std::size_t i = 0; i < b; ++i) {
            for (std::size_t k = 0; k < b; ++k) {
                int product = 0;
                for (std::size_t j = 0; j < b; ++j) {
                    product += transform::base_entry(b, i, j) * transform::base_entry(b, k, j);
                }
                CHECK(product == (i == k ? static_cast<int>(b) : 0));
            }
        }
    }
    for (const int size : all_sizes()) CHECK(transform::is_size(kind::hadamard, size));
    for (const int n : {0, 1, 3, 6, 10, 36, 60, 100, 2048, 1536, 2560, -16}) {
        CHECK_FALSE(transform::is_size(kind::hadamard, n));
    }
    CHECK(transform::is_size(kind::matrix, 3));
}

TEST_CASE("a matrix from a file turns groups, leaves ends, and comes back") {
    // A rotation by 3-4-5 triangles, its rows 5 long; comments and commas are fine.
    const text_file file("# 3 x 3\n3, 4, 0\n-4 3 0\n0 0 5e0\n");
    const rotation r{kind::matrix, 3, 0, file.path()};
    const floats x{1, 2, 3, 10, 20, 30, 7, 8};
    const floats y = rotated(r, x);
    const floats want{2.2f, 0.4f, 3, 22, 4, 30, 7, 8};
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == Approx(want[i]).epsilon(1e-7));
    CHECK(base::bits_of(y[0]) == base::bits_of(static_cast<float>(0.6 * 1 + 0.8 * 2)));
    const floats back = rotated_back(r, y);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(back[i] == Approx(x[i]).epsilon(1e-6));
    floats columns(8 * 2);
    for (std::size_t i = 0; i < 8; ++i) columns[2 * i] = x[i];
    transform::rotate(r, {columns.data(), 8, 2, 2}, run::column);
    for (std::size_t i = 0; i < 8; ++i) CHECK(columns[2 * i] == y[i]);
}

TEST_CASE("matrices that cannot be used are refused in one line") {
    const auto complaint = [](const std::string& text, int size) -> std::string {
        const text_file file(text);
        try {
            transform::load_matrix({kind::matrix, size, 0, file.path()});
        } catch (const base::error& e) {
            return e.message();
        }
        return "fine";
    };
    const auto says = [](const std::string& text, const char* part) {
        CAPTURE(text);
        return text.find(part) != std::string::npos;
    };
    CHECK(complaint("1 1\n1 -1\n", 2) == "fine");
    CHECK(says(complaint("1 1\n1 1\n", 2), "rows 1 and 2 are not orthogonal"));
    CHECK(says(complaint("1 0\n0 2\n", 2), "row 2 is 2 times as long"));
    CHECK(says(complaint("0 0\n0 2\n", 2), "all zeros"));
    CHECK(says(complaint("1 0 0 1", 3), "say transform_size=2"));
    CHECK(says(complaint("1 0 0 1 5", 2), "more than 4 numbers"));
    CHECK(says(complaint("1 nan 0 1", 2), "entry 2 is not a number"));
    CHECK(says(complaint("1 x 0 1", 2), "entry 2 is not a number"));
    CHECK(says(complaint("", 2), "holds 0 numbers"));
    try {
        transform::load_matrix({kind::matrix, 2, 0, "no such file"});
        CHECK(false);
    } catch (const base::error& e) {
        CHECK(says(e.message(), "cannot be opened"));
    }
}

TEST_CASE("the way back gives the bits again where the way there was exact") {
    // Pieces of 64, 16, 4 and 1: their factors are powers of two.
    for (const int size : {16, 64}) {
        for (const std::size_t length : {64u, 128u, 16u, 4u, 1u, 149u, 213u}) {
            if (size == 16 && length % 16 != 0 && length % 16 != 5 && length > 4) continue;
            for (const kind what : {kind::hadamard, kind::random_hadamard}) {
                CAPTURE(size, length);
                const rotation r{what, size, 9, {}};
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
    for (const int size : all_sizes()) {
        const auto n = static_cast<std::size_t>(size);
        const rotation r{kind::random_hadamard, size, 3, {}};
        const int base = size % 3 == 0 ? 12 : size % 5 == 0 ? 20 : 2;
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
            const floats x = numbers(n, seed);
            const floats y = rotated(r, x);
            floats error = rotated_back(r, y);
            for (std::size_t i = 0; i < n; ++i) error[i] -= x[i];
            const double bound = (std::log2(size) + base) * 0x1p-24;
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
    const floats first = transform::signs_of({kind::random_hadamard, 128, 0, {}});
    const floats second = transform::signs_of({kind::random_hadamard, 128, 1, {}});
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
    const floats shorter = transform::signs_of({kind::random_hadamard, 16, 0, {}});
    CHECK(same_bits(shorter, {first.begin(), first.begin() + 16}));
    CHECK(transform::signs_of({kind::hadamard, 16, 0, {}}) == floats(16, 1.0f));

    const rotation r{kind::random_hadamard, 32, 11, {}};
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
    const rotation r{kind::hadamard, 16, 0, {}};
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
        // Only at its own position, an Inf is not added to an Inf of the other sign.
        for (std::size_t i = 16; i < 32; ++i) {
            const bool is_inf = i == 20 && special == inf;
            CHECK(base::bits_of(back[i]) == (is_inf ? 0x7f800000u : 0x7fc00000u));
        }
        for (std::size_t i = 0; i < 16; ++i) CHECK(back[i] == 1);
    }
    // Zeros become +0, even with a negative sign.
    const floats zeros(16, -0.0f);
    const rotation s{kind::random_hadamard, 16, 1, {}};
    CHECK(same_bits(rotated_back(s, rotated(s, zeros)), floats(16, 0.0f)));
}
