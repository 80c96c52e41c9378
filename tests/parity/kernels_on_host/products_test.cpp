// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of emulated products, by the host, against the plain loop.
#include <random>

#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/gemm/cuda/device_engine.hpp"
#include "libmx/gemm/multiply.hpp"
#include "tests/catch.hpp"
#include "tests/host_device/host_device.hpp"
#include "tests/parity/gemm_operands.hpp"
#include "tests/parity/kernels_on_host/entries.hpp"

namespace {

using namespace mx::gemm;
using namespace mx::tests;

void start(const cuda::tile_launch& l, mx::base::cuda::stream& on) {
    if (card::enqueue_products(&l, on.handle()) != 0) {
        throw mx::base::error(mx::base::error_kind::unavailable, "no such grid");
    }
}

std::string nothing_missing() { return {}; }
std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m, int) {
    static mx::base::cuda::host_device device;
    return cuda::make_device_engine(device, start, a, b, m, 3);
}
const backend kernels{{"kernels", "as a device runs them", nothing_missing}, cuda::computes, make};

struct extents {
    std::size_t rows, columns, depth;
};

std::size_t wrong_outputs(const accumulator& m, const operand_format& fa, const operand_format& fb,
                          std::uint32_t scaling, operand_kind kind, const extents& size,
                          std::mt19937_64& random, const arrangement& how) {
    const operand a = make_operand(fa, kind, side::left, scaling, size.rows, size.depth, random);
    const operand b =
        make_operand(fb, kind, side::right, scaling, size.columns, size.depth, random);
    const auto c = make_accumulators(gives_f16(m), kind, size.rows * size.columns, random);
    multiply_control control;
    control.threads = 1;
    const auto expected = multiply_by(backend_named("scalar"), a, b, c, m, how, control);
    const auto got = multiply_by(kernels, a, b, c, m, how, control);
    REQUIRE(got.size() == expected.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != expected[i] ? 1u : 0u;
    return wrong;
}

// A pair of formats with a scaling, 0 for none, that an accumulator accepts.
struct pair_of_formats {
    const operand_format* a;
    const operand_format* b;
    std::uint32_t scaling;
};

std::vector<pair_of_formats> pairs_of(const accumulator& m) {
    std::vector<pair_of_formats> out;
    for (const operand_format& a : operand_formats) {
        for (const operand_format& b : operand_formats) {
            if (takes(m, a, b, 0)) out.push_back({&a, &b, 0});
            for (const operand_scale& s : operand_scales) {
                if (takes(m, a, b, s.bit)) out.push_back({&a, &b, s.bit});
            }
        }
    }
    return out;
}

// Those that a device has a kernel for.
bool has_kernel(const accumulator& m) {
    return has_steps(m.how) && m.fused_length <= cuda::longest_step;
}

}  // namespace

TEST_CASE("kernels of products leave the bits of the plain loop") {
    std::mt19937_64 random(1);
    std::size_t compared = 0;
    for (const accumulator& m : accumulators()) {
        if (!has_kernel(m)) continue;
        // Every kind is tested, with pairs that are far apart in the list.
        const auto pairs = pairs_of(m);
        for (const operand_kind kind : operand_kinds) {
            const pair_of_formats& p = pairs[compared * 7 % pairs.size()];
            arrangement how;
            how.order = compared % 2 == 0 ? k_order::ascending : k_order::descending;
            how.slices = 1 + compared % 3;
            CAPTURE(m.name, p.a->name, p.b->name, p.scaling, name_of(kind));
            // More than one block of the kernels.
            CHECK(wrong_outputs(m, *p.a, *p.b, p.scaling, kind, {35, 70, 150}, random, how) == 0);
            ++compared;
        }
    }
    CHECK(compared > 200);
}

TEST_CASE("tiles of a product lie where they belong") {
    std::mt19937_64 random(2);
    for (const accumulator& m : accumulators()) {
        if (!has_kernel(m)) continue;
        const pair_of_formats p = pairs_of(m).back();
        CAPTURE(m.name, p.a->name, p.b->name);
        for (const extents& size : {extents{1030, 3, 40}, {2, 1090, 40}}) {
            CHECK(wrong_outputs(m, *p.a, *p.b, p.scaling, operand_kind::finite_bits, size, random,
                                {}) == 0);
        }
    }
}
