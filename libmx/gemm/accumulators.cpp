// SPDX-License-Identifier: Apache-2.0
// The rows. Sources: MMA-Sim (peichenxie/MMA-Sim@0a5ce40, arXiv:2511.10909) for the shapes and F,
// alignment floors as tabulated by bksaiki/fpy (examples/mmasim/nv.py), recordings of
// north-numerical-computing/MATLAB-tensor-core@b12b5a7 (arXiv:2512.07004).
#include "libmx/gemm/accumulators.hpp"

#include <array>

#include "libmx/base/named.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/gemm/terms.hpp"

namespace mx::gemm {
namespace {

constexpr std::uint32_t halves = takes_bf16 | takes_f16;
constexpr std::uint32_t small = takes_fp8 | takes_fp6 | takes_fp4;

constexpr std::string_view no_hardware = "a definition, not a model of hardware";
constexpr std::string_view mma_sim = "MMA-Sim, which lists the instruction as tested on the chip";
constexpr std::string_view same_fp8_only =
    "MMA-Sim lists e4m3 x e4m3 and e5m2 x e5m2 as tested on the chip; mixed pairs, fp6 and fp4 "
    "are extrapolated";
constexpr std::string_view recorded_halves =
    "3000 dot products of each format recorded on the chip agree (narrow range: no specials, no "
    "subnormals); corners after MMA-Sim";
constexpr std::string_view recorded_f16_out =
    "3000 dot products recorded on the chip agree, but hardly depend on F and not on the floor; "
    "both after MMA-Sim (others model a floor of -21)";
constexpr std::string_view recorded_tf32 =
    "3000 dot products of 4 terms recorded on the chip agree (narrow range: no specials, no "
    "subnormals); corners after MMA-Sim";
constexpr std::string_view recorded_fp8_sm100 =
    "3000 dot products each of e4m3 x e4m3 and e5m2 x e5m2 recorded on the chip agree (narrow "
    "range), as they do with any F from 23 on; the order of k is that of the machine code of "
    "ptxas 13.0; the legacy path, not tcgen05";
constexpr std::string_view recorded_fp8_f16_sm100 =
    "50 dot products each of e4m3 x e4m3 and e5m2 x e5m2 recorded on the chip agree (narrow "
    "range; they hardly depend on F); two f16 instructions and an addition in the machine code of "
    "ptxas 13.0, like sm100.mma.f16.f16acc";
constexpr std::string_view recorded_fp8_f16_sm90 =
    "50 dot products each of e4m3 x e4m3 and e5m2 x e5m2 recorded on the chip agree (narrow "
    "range; they hardly depend on F); two f16 instructions and an addition in the machine code of "
    "ptxas 13.0, like sm90.mma.f16.f16acc";
constexpr std::string_view compiled_fp8_sm90 =
    "the machine code of ptxas 13.0: operands widened to f16, two f16 instructions like "
    "sm90.mma.f16 and an addition. sm90.mma.fp8 agrees with the recordings of others";
constexpr std::string_view recorded_fp8_sm90 =
    "3000 dot products each of e4m3 x e4m3 and e5m2 x e5m2 recorded on the chip agree (narrow "
    "range); the recordings did not add c";

// A row of a software model: algorithm, conversion of operands, and remark.
constexpr accumulator software(std::string_view name, algorithm how, intake enters, int length,
                               std::string_view remark) {
    accumulator a;
    a.name = name;
    a.how = how;
    a.enters = enters;
    a.operands = takes_everything;
    a.scales = scales_everything;
    a.fused_length = length;
    a.convert = conversion::rne_fp32;
    a.zero = zero_sign::kept;
    a.known_from = evidence::definition;
    a.remark = remark;
    return a;
}

// A row with fused steps; the arguments are what differs between Nvidia's instructions.
constexpr accumulator unit(std::string_view name, std::string_view instruction,
                           std::uint32_t operands, int length, int fraction_bits, int floor,
                           conversion convert, std::string_view remark = mma_sim) {
    accumulator a;
    a.name = name;
    a.instruction = instruction;
    a.operands = operands;
    a.fused_length = length;
    a.fraction_bits = fraction_bits;
    a.exponent_floor = floor;
    a.convert = convert;
    a.compared = operands;
    a.remark = remark;
    return a;
}

// Recorded with both operands in the same format.
constexpr accumulator recorded(accumulator a, entry c = entry::term) {
    a.known_from = evidence::recorded;
    a.mixed_compared = false;
    a.c = c;
    return a;
}

// fp8 with instructions for f16.
constexpr accumulator halved(accumulator a) {
    a.enters = intake::halves;
    a.c = entry::afterwards;
    return a;
}

constexpr accumulator extrapolated(accumulator a) {
    a.known_from = evidence::extrapolated;
    return a;
}

// MMA-Sim's list of tested operands includes only pairs of the same fp8 format.
constexpr accumulator same_fp8(accumulator a) {
    a.compared = takes_fp8;
    a.mixed_compared = false;
    a.remark = same_fp8_only;
    return a;
}

// No list of tested instructions includes this one.
constexpr accumulator fp8_extended(accumulator a) {
    a.known_from = evidence::extrapolated;
    a.remark =
        "the model of mma.sync of fp8 on the chip, which ptxas 13.0 compiles to the same machine "
        "instruction (QMMA), with other formats; nobody lists fp6 and fp4 as tested";
    return a;
}

constexpr accumulator scaled(accumulator a, std::uint32_t scales) {
    a.scales = scales;
    return a;
}

// The 4-bit block-scaled kinds.
constexpr accumulator grouped(std::string_view name, std::string_view instruction,
                              std::uint32_t scales, evidence known_from, std::string_view remark) {
    accumulator a = unit(name, instruction, takes_fp4, 64, 35, -139, conversion::rz_fp32, remark);
    a.how = algorithm::grouped;
    a.group_length = 16;
    a.scales = scales;
    a.known_from = known_from;
    return a;
}

constexpr accumulator cdna3(std::string_view name, std::string_view instruction, algorithm how,
                            std::uint32_t operands, int length) {
    accumulator a = unit(name, instruction, operands, length, 24, -126, conversion::rne_fp32);
    a.how = how;
    a.wide_fraction_bits = 31;
    return a;
}

// CDNA3's float32 instructions are chains of IEEE fused multiply-adds.
constexpr accumulator cdna3_f32() {
    accumulator a = software("cdna3.f32", algorithm::fma_chain, intake::float32, 1, mma_sim);
    a.instruction = "v_mfma_f32 f32";
    a.operands = takes_f32;
    a.scales = 0;
    a.compared = takes_f32;
    a.known_from = evidence::published;
    return a;
}

constexpr auto rz = conversion::rz_fp32;
constexpr auto rz13 = conversion::rz_e8m13;
constexpr auto rne16 = conversion::rne_fp16;

constexpr std::array accumulator_rows{
    software("exact", algorithm::exact, intake::codes, 0, no_hardware),
    software("fp32.fma", algorithm::fma_chain, intake::float32, 1, no_hardware),
    software("fp32.pairwise", algorithm::pairwise, intake::float32, 0, no_hardware),
    software("bf16.fma", algorithm::fma_chain, intake::bfloat16, 1,
             "operands dequantized to bfloat16, products summed in float32, as Yang et al. (An "
             "Empirical Study of Microscaling Formats for Low-Precision LLM Training) and others "
             "emulate MX training; their order of summation is a library's, here it is that of k"),

    unit("sm100.f16", "tcgen05.mma kind::f16", halves, 16, 25, -133, rz),
    unit("sm100.f16.f16acc", "tcgen05.mma kind::f16", takes_f16, 16, 25, -133, rne16),
    unit("sm100.tf32", "tcgen05.mma kind::tf32", takes_tf32, 8, 25, -133, rz),
    same_fp8(unit("sm100.f8f6f4", "tcgen05.mma kind::f8f6f4", small, 32, 25, -133, rz)),
    same_fp8(unit("sm100.f8f6f4.f16acc", "tcgen05.mma kind::f8f6f4", small, 32, 25, -133, rne16)),
    scaled(same_fp8(unit("sm100.mxf8f6f4", "tcgen05.mma kind::mxf8f6f4", small, 32, 25, -133, rz)),
           scales_e8m0_32),
    grouped("sm100.mxf4", "tcgen05.mma kind::mxf4", scales_e8m0_32, evidence::extrapolated,
            "MMA-Sim's model of kind::mxf4nvf4, which it lists as tested; mxf4 itself is not"),
    grouped("sm100.mxf4nvf4", "tcgen05.mma kind::mxf4nvf4", scales_everything, evidence::published,
            mma_sim),
    recorded(unit("sm100.mma.f16", "mma.sync", halves, 16, 25, -133, rz, recorded_halves)),
    recorded(
        unit("sm100.mma.f16.f16acc", "mma.sync", takes_f16, 16, 25, -22, rne16, recorded_f16_out)),
    recorded(unit("sm100.mma.tf32", "mma.sync", takes_tf32, 8, 25, -133, rz, recorded_tf32)),
    halved(recorded(
        unit("sm100.mma.fp8", "mma.sync", takes_fp8, 16, 25, -133, rz, recorded_fp8_sm100))),
    halved(recorded(unit("sm100.mma.fp8.f16acc", "mma.sync", takes_fp8, 16, 25, -22, rne16,
                         recorded_fp8_f16_sm100))),

    unit("sm120.f16", "mma.sync", halves, 16, 25, -133, rz),
    unit("sm120.f16.f16acc", "mma.sync", takes_f16, 16, 25, -22, rne16),
    unit("sm120.tf32", "mma.sync", takes_tf32, 8, 25, -133, rz),
    unit("sm120.fp8", "mma.sync", takes_fp8, 32, 25, -133, rz),
    unit("sm120.fp8.f16acc", "mma.sync", takes_fp8, 32, 25, -22, rne16),
    fp8_extended(unit("sm120.f8f6f4", "mma.sync kind::f8f6f4", small, 32, 25, -133, rz)),
    fp8_extended(unit("sm120.f8f6f4.f16acc", "mma.sync kind::f8f6f4", small, 32, 25, -22, rne16)),
    scaled(same_fp8(unit("sm120.mxf8f6f4", "mma.sync kind::mxf8f6f4", small, 32, 25, -133, rz)),
           scales_e8m0_32),
    grouped("sm120.mxf4", "mma.sync kind::mxf4", scales_e8m0_32, evidence::published, mma_sim),
    grouped("sm120.mxf4nvf4", "mma.sync kind::mxf4nvf4", scales_e8m0_32 | scales_ue4m3_16,
            evidence::published, mma_sim),

    unit("sm90.wgmma.f16", "wgmma", halves, 16, 25, -133, rz),
    unit("sm90.wgmma.f16.f16acc", "wgmma", takes_f16, 16, 25, -133, rne16),
    unit("sm90.wgmma.tf32", "wgmma", takes_tf32, 8, 25, -133, rz),
    unit("sm90.wgmma.fp8", "wgmma", takes_fp8, 32, 13, -133, rz13),
    unit("sm90.wgmma.fp8.f16acc", "wgmma", takes_fp8, 32, 13, -133, rne16),
    recorded(unit("sm90.mma.f16", "mma.sync", halves, 16, 25, -133, rz, recorded_halves)),
    recorded(
        unit("sm90.mma.f16.f16acc", "mma.sync", takes_f16, 16, 25, -22, rne16, recorded_f16_out)),
    recorded(unit("sm90.mma.tf32", "mma.sync", takes_tf32, 8, 25, -133, rz, recorded_tf32)),
    recorded(unit("sm90.mma.fp8", "mma.sync", takes_fp8, 32, 13, -133, rz13, recorded_fp8_sm90),
             entry::ignored),
    extrapolated(halved(
        unit("sm90.mma.fp8.halves", "mma.sync", takes_fp8, 16, 25, -133, rz, compiled_fp8_sm90))),
    halved(recorded(unit("sm90.mma.fp8.f16acc", "mma.sync", takes_fp8, 16, 25, -22, rne16,
                         recorded_fp8_f16_sm90))),

    unit("sm89.f16", "mma.sync", halves, 8, 24, -132, rz),
    unit("sm89.f16.f16acc", "mma.sync", takes_f16, 8, 24, -21, rne16),
    unit("sm89.tf32", "mma.sync", takes_tf32, 4, 24, -132, rz),
    unit("sm89.fp8", "mma.sync", takes_fp8, 16, 13, -132, rz13),
    unit("sm89.fp8.f16acc", "mma.sync", takes_fp8, 16, 13, -21, rne16),

    unit("sm80.f16", "mma.sync", halves, 8, 24, -132, rz),
    unit("sm80.f16.f16acc", "mma.sync", takes_f16, 8, 24, -21, rne16),
    unit("sm80.tf32", "mma.sync", takes_tf32, 4, 24, -132, rz),

    cdna3("cdna3.f16", "v_mfma_f32 f16, bf16", algorithm::two_sided, halves, 8),
    cdna3("cdna3.xf32", "v_mfma_f32 xf32", algorithm::two_sided, takes_tf32, 4),
    cdna3("cdna3.fp8", "v_mfma_f32 fp8, bf8", algorithm::interleaved, takes_fnuz, 16),
    cdna3_f32(),
};

bool mixes(const operand_format& f) { return (f.member & small) != 0 || f.member == takes_fnuz; }

}  // namespace

std::span<const accumulator> accumulators() { return accumulator_rows; }

const accumulator* find_accumulator(std::string_view name) {
    return base::find_named(accumulator_rows, name);
}

bool gives_f16(const accumulator& a) { return gives_f16(a.convert); }

bool takes(const accumulator& m, const operand_format& a, const operand_format& b,
           std::uint32_t scaling) {
    if ((m.operands & a.member) == 0 || (m.operands & b.member) == 0) return false;
    if (scaling != 0 && (m.scales & scaling) == 0) return false;
    if (m.known_from == evidence::definition || a.name == b.name) return true;
    return mixes(a) && mixes(b);
}

}  // namespace mx::gemm
