// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels of emulated products, by the host, against the plain loop.
#include <random>

#include "libmx/base/cuda/host_device.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"
#include "libmx/gemm/cuda/cuda_engine.hpp"
#include "libmx/gemm/cuda/device_engine.hpp"
#include "libmx/gemm/multiply.hpp"
#include "tests/catch.hpp"
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

bool always() { return true; }
std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m, int) {
    static mx::base::cuda::host_device device;
    return cuda::make_device_engine(device, start, a, b, m);
}
const backend kernels{"kernels", "as a device runs them", always, cuda::computes, make};

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

// The scaling of each accumulator for a pair of formats, 0 for none; formats it does not take are
// left out.
std::vector<std::uint32_t> scalings_of(const accumulator& m, const operand_format& a,
                                       const operand_format& b) {
    std::vector<std::uint32_t> out;
    if (takes(m, a, b, 0)) out.push_back(0);
    for (const operand_scale& s : operand_scales) {
        if (takes(m, a, b, s.bit)) out.push_back(s.bit);
    }
    return out;
}

}  // namespace

TEST_CASE("kernels of products leave the bits of the plain loop") {
    std::mt19937_64 random(1);
    std::size_t compared = 0;
    for (const accumulator& m : accumulators()) {
        if (!has_steps(m.how) || m.fused_length > cuda::longest_step) continue;
        // Every model has a turn, with kinds and formats that differ from one to the next.
        std::uint64_t turn = compared;
        for (const operand_format& fa : operand_formats) {
            for (const operand_format& fb : operand_formats) {
                for (const std::uint32_t scaling : scalings_of(m, fa, fb)) {
                    if (turn++ % 3 != 0) continue;
                    const operand_kind kind = operand_kinds[compared % operand_kinds.size()];
                    arrangement how;
                    how.order = compared % 2 == 0 ? k_order::ascending : k_order::descending;
                    how.slices = 1 + compared % 3;
                    CAPTURE(m.name, fa.name, fb.name, scaling, name_of(kind));
                    CHECK(wrong_outputs(m, fa, fb, scaling, kind, {35, 70, 300}, random, how) == 0);
                    ++compared;
                }
            }
        }
    }
    CHECK(compared > 50);
}

TEST_CASE("tiles of a product lie where they belong") {
    std::mt19937_64 random(2);
    for (const accumulator& m : accumulators()) {
        if (!has_steps(m.how) || m.fused_length > cuda::longest_step) continue;
        for (const operand_format& f : operand_formats) {
            const auto scalings = scalings_of(m, f, f);
            if (scalings.empty()) continue;
            CAPTURE(m.name, f.name);
            for (const extents& size : {extents{1030, 3, 40}, {2, 1090, 40}}) {
                CHECK(wrong_outputs(m, f, f, scalings.back(), operand_kind::finite_bits, size,
                                    random, {}) == 0);
            }
            break;
        }
    }
}
