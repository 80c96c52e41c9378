// SPDX-License-Identifier: Apache-2.0
// Products against the scalar chain, bit for bit.
#include <cmath>
#include <cstring>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/lab/product.hpp"
#include "tests/catch.hpp"

namespace mx::lab {
namespace {

std::vector<float> gaussian(std::uint64_t tensor, std::size_t count) {
    std::vector<float> x(count);
    simd::scalar_kernels.normal({2, tensor}, 0, count, x.data());
    return x;
}

float at(const operand_view& x, std::size_t r, std::size_t k) {
    return x.transposed ? x.data[k * x.rows + r] : x.data[r * x.depth + k];
}

std::vector<float> chains(const operand_view& a, const operand_view& b) {
    std::vector<float> c;
    for (std::size_t i = 0; i < a.rows; ++i) {
        for (std::size_t j = 0; j < b.rows; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < a.depth; ++k) sum = std::fma(at(a, i, k), at(b, j, k), sum);
            c.push_back(std::isnan(sum) ? base::quiet_nan() : sum);
        }
    }
    return c;
}

TEST_CASE("every output of a product is one ascending chain of fused multiply-adds") {
    struct shape {
        std::size_t m, n, k;
    };
    for (const shape s : {shape{1, 1, 1}, shape{7, 5, 3}, shape{64, 33, 300}, shape{101, 64, 700},
                          shape{13, 257, 31}}) {
        const std::vector<float> a = gaussian(1, s.m * s.k);
        std::vector<float> b = gaussian(2, s.n * s.k);
        // NaN in column 0 of C, of one bit pattern whatever those of the operand are.
        b[0] = base::float_from_bits(0xffc12345);
        for (const bool ta : {false, true}) {
            for (const bool tb : {false, true}) {
                const operand_view va{a.data(), s.m, s.k, ta}, vb{b.data(), s.n, s.k, tb};
                const std::vector<float> expected = chains(va, vb);
                for (const simd::kernels* k : simd::available()) {
                    for (const int threads : {1, 2, 7}) {
                        execution_context on(threads, k->name);
                        std::vector<float> c(s.m * s.n, NAN);
                        multiply(on, va, vb, c.data());
                        INFO(k->name << " " << threads << " threads " << s.m << "x" << s.n << "x"
                                     << s.k);
                        CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) ==
                              0);
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace mx::lab
