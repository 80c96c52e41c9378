// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "apps/mx_capture/parts.hpp"

namespace mx::capture {
namespace {

using namespace conformance::vectors;

// The products recorded from cuBLASLt: MXFP8, MXFP4, NVFP4, and on Hopper fp8 with one scale per
// tensor.
struct product_kind {
    std::string_view name;
    std::string_view a, b;
    std::string_view scale;
    std::size_t block;
    std::size_t instruction_k;
    std::string_view instruction;  // the instruction that the library is expected to use
    bool fast = false;

    bool hopper() const { return scale.empty(); }
};
constexpr std::array product_kinds{
    product_kind{"mxfp8.e4m3.e4m3", "e4m3", "e4m3", "e8m0", 32, 32, "mxf8f6f4"},
    product_kind{"mxfp8.e4m3.e5m2", "e4m3", "e5m2", "e8m0", 32, 32, "mxf8f6f4"},
    product_kind{"mxfp8.e5m2.e4m3", "e5m2", "e4m3", "e8m0", 32, 32, "mxf8f6f4"},
    product_kind{"mxfp4", "e2m1", "e2m1", "e8m0", 32, 64, "mxf4"},
    product_kind{"nvfp4", "e2m1", "e2m1", "ue4m3", 16, 64, "mxf4nvf4"},
    product_kind{"fp8.e4m3.e4m3", "e4m3", "e4m3", "", 0, 32, "wgmma"},
    product_kind{"fp8.e4m3.e5m2", "e4m3", "e5m2", "", 0, 32, "wgmma"},
    product_kind{"fp8.e5m2.e4m3", "e5m2", "e4m3", "", 0, 32, "wgmma"},
    product_kind{"fp8_fast.e4m3.e4m3", "e4m3", "e4m3", "", 0, 32, "wgmma", true},
    product_kind{"fp8_fast.e4m3.e5m2", "e4m3", "e5m2", "", 0, 32, "wgmma", true},
    product_kind{"fp8_fast.e5m2.e4m3", "e5m2", "e4m3", "", 0, 32, "wgmma", true},
};

std::string instruction_of(const product_kind& kind, const chip& c) {
    if (kind.hopper()) return "wgmma (expected of the library)";
    return fmt::format("{} kind::{}.block_scale (expected of the library)",
                       c.tcgen05 ? "tcgen05.mma" : "mma.sync", kind.instruction);
}

struct shape {
    std::size_t rows, columns;
};
constexpr std::array shapes{shape{128, 128}, shape{256, 128}, shape{128, 384}, shape{384, 256}};
constexpr std::array<std::size_t, 4> depths{128, 256, 1024, 4096};

void record(const product_kind& kind, const library_problem& p, const chip& c, device& d,
            recording& to) {
    const library_product product = d.multiply_by_library(p);
    to.add("D", p.bf16 ? tensor::dtype::u16 : tensor::dtype::u32, {p.rows, p.columns},
           product.outputs);
    to.metadata.insert(product.facts.begin(), product.facts.end());
    to.note_operands(p.what);
    to.note_generator(mma_inputs_version, p.seed);
    to.note("m", p.rows);
    to.note("n", p.columns);
    to.note("alpha", 1);
    to.note("beta", 0);
    to.metadata["kind"] = "gemm";
    to.metadata["instruction"] = instruction_of(kind, c);
    to.metadata["out_format"] = p.bf16 ? "bf16" : "f32";
    if (kind.hopper()) to.metadata["fast_accumulation"] = kind.fast ? "true" : "false";
}

}  // namespace

void append_products(std::vector<part>& parts, const chip& c, const amounts& a) {
    for (const product_kind& kind : product_kinds) {
        // The library supports block scales from Blackwell on.
        if (kind.hopper() ? !c.wgmma : !c.narrow_cvt) continue;
        for (const shape& s : shapes) {
            // The smallest and the largest shape of products without block scales.
            if (kind.hopper() && (s.rows == 128) != (s.columns == 128)) continue;
            for (const std::size_t depth : depths) {
                if (depth > a.largest_product) continue;
                for (const bool bf16 : {false, true}) {
                    const mma_case what{gemm::find_operand_format(kind.a),
                                        gemm::find_operand_format(kind.b),
                                        gemm::find_operand_scale(kind.scale, kind.block),
                                        false,
                                        kind.instruction_k,
                                        depth / kind.instruction_k};
                    const library_problem p{what, a.seed, s.rows, s.columns, bf16, kind.fast};
                    parts.push_back(
                        {fmt::format("gemm/{}.{}x{}x{}.{}.safetensors", kind.name, s.rows,
                                     s.columns, depth, bf16 ? "bf16" : "f32"),
                         s.rows * s.columns * (bf16 ? 2 : 4),
                         [&kind, p, c](device& d, recording& to) { record(kind, p, c, d, to); }});
                }
            }
        }
    }
}

}  // namespace mx::capture
