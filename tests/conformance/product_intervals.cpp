// SPDX-License-Identifier: Apache-2.0
// Outputs of matrix units, recorded and published, against the interval of float32 sums whose
// additions give either neighbour (docs/design/tolerances.md).
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/conformance/vectors/mma_model.hpp"
#include "libmx/conformance/verify/mma_file.hpp"
#include "libmx/conformance/verify/vector_file.hpp"
#include "libmx/conformance/verify/verify.hpp"
#include "libmx/gemm/sum_interval.hpp"
#include "libmx/gemm/unpacked_operand.hpp"
#include "libmx/io/readers.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx;
using namespace mx::conformance;

struct interval_counts {
    std::size_t outputs = 0, outside = 0, single = 0;
    double used = 0;  // the largest share of the distance from the exact sum

    void add(const std::vector<double>& terms, int scalings, std::uint32_t d) {
        const gemm::sum_interval r = gemm::interval_of_sum(terms, {true, scalings});
        const auto got = static_cast<double>(base::float_from_bits(d));
        ++outputs;
        outside += r.contains(got) ? 0 : 1;
        single += r.radius() == 0 ? 1 : 0;
        if (r.radius() > 0 && std::isfinite(got)) {
            used = std::max(used, std::abs(got - r.exact) / r.radius());
        }
    }
};

// Whether an element of row `r` that is not zero is below its format's normal numbers. A unit
// aligns it at the least exponent, above its leading bit, so that it can truncate what float32
// would keep.
bool has_subnormals(const gemm::operand& x, std::size_t r) {
    const std::uint32_t exponents = (1u << x.format->exponent_bits) - 1;
    const int low = x.format->mantissa_bits + x.format->dropped_bits;
    const auto row = std::span(x.codes).subspan(r * x.depth, x.depth);
    return std::ranges::any_of(row, [&](std::uint32_t code) {
        return (code >> low & exponents) == 0 && (code & ((1u << low) - 1)) != 0;
    });
}

// Outputs d[i * n + j] of rows of a and b: to `to`, and with subnormal elements to `others`.
void add_tile(const gemm::operand& a, const gemm::operand& b, const std::uint32_t* c,
              const std::uint32_t* d, interval_counts& to, interval_counts& others) {
    const std::vector<double> x = gemm::exact_values(a), y = gemm::exact_values(b);
    std::vector<double> terms(a.depth + 1);
    for (std::size_t i = 0; i < a.rows; ++i) {
        for (std::size_t j = 0; j < b.rows; ++j) {
            for (std::size_t k = 0; k < a.depth; ++k) {
                terms[k] = x[i * a.depth + k] * y[j * a.depth + k];
            }
            terms.back() = static_cast<double>(base::float_from_bits(c[i * b.rows + j]));
            const bool small = has_subnormals(a, i) || has_subnormals(b, j);
            (small ? others : to).add(terms, 0, d[i * b.rows + j]);
        }
    }
}

interval_counts counts_recorded(const verify::vector_file& file) {
    const vectors::mma_case what = verify::mma_case_of(file);
    const auto rows = static_cast<std::size_t>(file.info("A").shape[0]);
    const auto depth = static_cast<std::size_t>(file.info("A").shape[1]);
    const verify::operand_stack a{vectors::empty_operand(what, what.a, 1, depth),
                                  verify::mma_codes(file, "A", *what.a)};
    const verify::operand_stack b{vectors::empty_operand(what, what.b, 1, depth),
                                  verify::mma_codes(file, "B", *what.b)};
    const auto c = file.u32("C", rows), d = file.u32("D", rows);
    interval_counts t;
    for (std::size_t i = 0; i < rows; ++i) add_tile(a.tile(i), b.tile(i), &c[i], &d[i], t, t);
    return t;
}

// The tiles of one distribution of an mma file without subnormal elements; with them, `others`.
void count_tiles(const verify::vector_file& file, const std::string& dist, interval_counts& t,
                 interval_counts& others) {
    const vectors::mma_case what = verify::mma_case_of(file);
    const auto extent = [&](const std::string& tensor, std::size_t axis) {
        return static_cast<std::size_t>(file.info(tensor).shape[axis]);
    };
    const std::size_t tiles = extent(dist + ".A", 0), m = extent(dist + ".A", 1);
    const std::size_t n = extent(dist + ".B", 1), k = extent(dist + ".A", 2);
    const auto stack = [&](const std::string& side, const gemm::operand_format* f,
                           std::size_t rows) {
        verify::operand_stack s{vectors::empty_operand(what, f, rows, k),
                                verify::mma_codes(file, dist + "." + side, *f)};
        if (what.scale != nullptr) {
            s.scales = file.u8(dist + ".SF" + side, verify::vector_file::any_count);
        }
        return s;
    };
    const verify::operand_stack a = stack("A", what.a, m), b = stack("B", what.b, n);
    const auto c = file.words(dist + ".C", 32, tiles * m * n);
    const auto d = file.words(dist + ".D", 32, tiles * m * n);
    for (std::size_t i = 0; i < tiles; ++i) {
        add_tile(a.tile(i), b.tile(i), &c[i * m * n], &d[i * m * n], t, others);
    }
}

}  // namespace

TEST_CASE("recorded float32 outputs lie in the intervals of their sums", "[mma]") {
    std::size_t outputs = 0;
    for (const std::string& path :
         verify::vector_paths({MX_SOURCE_DIR "/datasets/vectors/recorded"})) {
        const auto opened = io::open_model(path, {});
        const verify::vector_file file(*opened, path);
        // Hopper's FP8 keeps 13 bits, and its recordings did not add C.
        const bool coarse = file.at("model").find("ignored") != std::string::npos;
        if (file.at("out_format") != "f32" || coarse) continue;
        const interval_counts t = counts_recorded(file);
        INFO(path << ": used " << t.used);
        CHECK(t.outside == 0);
        CHECK(t.used > 0);
        outputs += t.outputs;
    }
    CHECK(outputs > 1500);
}

TEST_CASE("published float32 outputs lie in the intervals of their sums", "[mma]") {
    interval_counts all, subnormal;
    for (const std::string& path : verify::vector_paths({MX_SOURCE_DIR "/datasets/vectors/mma"})) {
        const auto opened = io::open_model(path, {});
        const verify::vector_file file(*opened, path);
        if (file.at("acc_format") != "f32" || std::stoi(file.at("F")) < 24) continue;
        for (const io::tensor_info& x : file.tensors()) {
            if (!x.name.ends_with(".D")) continue;
            const std::string dist = x.name.substr(0, x.name.size() - 2);
            interval_counts t;
            count_tiles(file, dist, t, subnormal);
            INFO(path << ", " << dist << ": used " << t.used);
            CHECK(t.outside == 0);
            all.outputs += t.outputs;
            all.single += t.single;
        }
    }
    INFO(all.outputs << " outputs, " << all.single << " of one value; of " << subnormal.outputs
                     << " with subnormals " << subnormal.outside << " are outside");
    CHECK(all.outputs > 2500);
    CHECK(all.single > 400);
}
