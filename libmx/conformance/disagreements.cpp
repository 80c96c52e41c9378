// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/disagreements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/dialect_columns.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/format/decode.hpp"

namespace mx::conformance {
namespace {

using input = std::uint32_t;
constexpr std::array<input, 1> one_75{0x3fe00000};
constexpr std::array<input, 1> largest_f32{0x7f7fffff};
constexpr std::array<input, 1> one_9{0x3ff33333};
constexpr std::array<input, 1> below_1024{0x447fffff};
constexpr std::array<input, 2> point_02_beside_1{0x3ca3d70a, 0x3f800000};
constexpr std::array<input, 1> two_5{0x40200000};
constexpr std::array<input, 1> infinity{0x7f800000};
constexpr std::array<input, 1> above_2_127{0x7f000001};
constexpr std::array<input, 1> one_25{0x3fa00000};
constexpr std::array<input, 1> above_6144{0x45c00001};
constexpr std::array<input, 1> four_seventy{0x43eb0000};
constexpr std::array<input, 1> below_minus_2{0xbfffc000};
constexpr std::array<input, 1> zero{0x00000000};
constexpr std::array<input, 1> nan{0x7fc00000};
// Two blocks of two: 1.9 is in the column where the second block has 2^-17.
constexpr std::array<input, 4> two_blocks{0x3ff33333, 0x3f800000, 0x37000000, 0x3f800000};
// A block of 2688, so that the tensor scale is 1, then one with 0.03.
constexpr std::array<input, 17> tiny_beside_2688{0x45280000, 0, 0, 0, 0, 0, 0, 0,         0,
                                                 0,          0, 0, 0, 0, 0, 0, 0x3cf5c28f};
constexpr std::array<input, 1> eighteen_hundred{0x44e10000};
constexpr std::array<input, 1> five_hundred{0x43fa0000};

constexpr disagreement row(int number, std::string_view title, std::string_view story, probe kind,
                           std::span<const input> x, respondent a, respondent b) {
    return {number, title, story, kind, x, a, b};
}

constexpr std::array disagreement_rows{
    row(1, "scale=even at an exact tie", "torchao and Quark go up, FBGEMM goes down", probe::row,
        one_75, {"torchao", "mxfp4:scale=even,dialect=torchao"},
        {"fbgemm", "mxfp4:scale=even,dialect=fbgemm"}),
    row(2, "scale=even next to the largest float32",
        "torchao gives a NaN block, Quark clamps the scale to 2^127, FBGEMM gives code 0, "
        "compressed-tensors Inf before its cast",
        probe::row, largest_f32, {"torchao", "mxfp4:scale=even,dialect=torchao"},
        {"quark", "mxfp4:scale=even,dialect=quark"}),
    row(3, "the threshold of scale=even for MXFP8",
        "torchao rounds to the element's three mantissa bits (up from 1.9375), "
        "compressed-tensors to one (up from 1.75)",
        probe::row, one_9, {"torchao", "mxfp8:scale=even,dialect=torchao"},
        {"compressed-tensors", "mxfp8:dialect=compressed-tensors"}),
    row(4, "rules on a float32 log2 and rules on exponent bits",
        "microxcaling, FBGEMM, ggml, Quark and TetraJet take a rounded log2, torchao, "
        "Transformer Engine and CUDA the bits",
        probe::row, below_1024, {"microxcaling", "mxfp4:dialect=microxcaling"}, {"ocp", "mxfp4"}),
    row(5, "what FBGEMM subtracts for E3M0",
        "FBGEMM subtracts the 3 exponent bits where emax is 4, and flushes all of "
        "[1/8, 1/4) of a scale to zero",
        probe::row, point_02_beside_1, {"fbgemm", "mxfp4_e3m0:scale=floor,dialect=fbgemm"},
        {"ocp", "mxfp4_e3m0"}),
    row(6, "FBGEMM's stochastic rounding",
        "random bits are added and the sum is still rounded to nearest, so that the "
        "result is half an ulp too large on average",
        probe::element, two_5, {"fbgemm", "e2m1 stochastic"}, {"ocp", "e2m1 stochastic"}),
    row(7, "a block with an Inf",
        "a saturating conversion of the scale gives 254, torchao, CUTLASS's software "
        "path and ml_dtypes give 255",
        probe::row, infinity, {"nvidia", "mxfp8:dialect=nvidia"},
        {"torchao", "mxfp8:scale=rceil,dialect=torchao"}),
    row(8, "finite values beyond 2^127 to E8M0", "254 when the conversion saturates, 255 otherwise",
        probe::e8m0, above_2_127, {"nvidia", ""}, {"torchao", ""}),
    row(9, "a float32 to E8M0",
        "CUDA, Transformer Engine and CUTLASS round up, ml_dtypes to nearest even (and "
        "makes 0 NaN)",
        probe::e8m0, one_25, {"nvidia", ""}, {"ml_dtypes", ""}),
    row(10, "ceil of a float32 log2 just above max * 2^k",
        "modelopt, Quark's enhanced and TetraJet lose the round-up, so that the block maximum is "
        "beyond the largest value",
        probe::row, above_6144, {"modelopt", "mxfp4:dialect=modelopt"},
        {"torchao", "mxfp4:scale=rceil,dialect=torchao"}),
    row(11, "the largest E4M3 value",
        "TetraJet and Quark's enhanced count on 480, the format ends at 448", probe::row,
        four_seventy, {"tetrajet", "mxfp8:dialect=tetrajet"},
        {"torchao", "mxfp8:scale=rceil,dialect=torchao"}),
    row(12, "the negative end of MXINT8",
        "OCP and gfloat use -2, microxcaling and Quark stop at -127/64", probe::row, below_minus_2,
        {"ocp", "mxint8"}, {"microxcaling", "mxint8:dialect=microxcaling"}),
    row(13, "the scale of a zero block of MXINT8",
        "microxcaling's PyTorch path takes 2^-126 for the maximum, its native path and "
        "gfloat give code 0",
        probe::row, zero, {"microxcaling", "mxint8:dialect=microxcaling"},
        {"microxcaling-native", "mxint8:dialect=microxcaling-native"}),
    row(14, "NaN into FP4 and FP6",
        "+max (CUDA), a zero of the opposite sign (ml_dtypes), what the payload leaves "
        "(torchao), NaN kept as a value (Quark, microxcaling)",
        probe::element, nan, {"nvidia", "e2m1 rtne"}, {"ml_dtypes", "e2m1 rtne"}),
    row(15, "Inf in an FP8 cast",
        "CUDA gives the largest value, ml_dtypes NaN (E4M3) or Inf (E5M2)", probe::element,
        infinity, {"nvidia", "e4m3 rtne"}, {"ml_dtypes", "e4m3 rtne"}),
    row(16, "the smallest NVFP4 block scale",
        "torchao clamps block scales up to 2^-6, Transformer Engine and ggml use E4M3 subnormals, "
        "modelopt uses 1 for a scale that rounds to zero",
        probe::row, tiny_beside_2688, {"torchao", "nvfp4:dialect=torchao"},
        {"te", "nvfp4:dialect=te"}),
    row(17, "ggml's conversion to UE4M3",
        "scales of 248 and more become 448, since exponent field 15 is taken for "
        "overflow; ties go away from zero",
        probe::row, eighteen_hundred, {"ggml", "nvfp4:dialect=ggml"},
        {"ocp", "nvfp4:scale=single-level"}),
    row(18, "the exponent bump of arXiv 2506.20752",
        "described with one maximum per block, coded with one per position across the "
        "blocks of a row, so that scales differ inside a block",
        probe::row, two_blocks,
        {"systems-scaling", "mxfp8:round=rtne,block=1x2,dialect=systems-scaling"},
        {"ocp", "mxfp8:scale=floor-bump,block=1x2"}),
    row(20, "finite values beyond the largest E4M3",
        "the HIP OCP header's host conversion gives NaN although it saturates", probe::element,
        five_hundred, {"amd-hip", "e4m3 rtne"}, {"nvidia", "e4m3 rtne"}),
    row(21, "finite values beyond the largest FP8 value",
        "a cast of ml_dtypes does not saturate, it gives NaN (E4M3) or Inf (E5M2)", probe::element,
        five_hundred, {"nvidia", "e4m3 rtne"}, {"ml_dtypes", "e4m3 rtne"}),
};

response ask_row(std::span<const float> row, const codec::recipe& r) {
    codec::tensor_facts facts;
    for (const float x : row) {
        const std::uint32_t magnitude = base::bits_of(x) & base::f32_magnitude_mask;
        if (magnitude < base::f32_infinity) facts.amax_bits = std::max(facts.amax_bits, magnitude);
    }
    const codec::block_params p = codec::params_of(r, facts);
    const auto cols = std::min(static_cast<std::size_t>(r.block.cols), row.size());
    std::vector<std::uint8_t> bump;
    if (r.by->id == codec::dialect_id::systems_scaling &&
        r.rule->id == scale::rule_id::floor_bump) {
        bump.resize(cols);
        codec::bumps_of_row(row, bump);
    }
    const std::size_t last = (row.size() - 1) / cols * cols;
    const std::span<const float> x = row.subspan(last);
    codec::block_place place;
    place.first = last;
    place.cols = static_cast<int>(x.size());
    place.bump = bump.empty() ? nullptr : bump.data();
    std::vector<std::uint8_t> codes(x.size());
    std::vector<float> values(x.size());
    const block::block_stats s = codec::quantize_block(p, x, place, codes, values);
    const bool byte = r.by->storage.value == codec::scale_storage::code;
    return {byte ? s.scale_code : -1, s.scale, codes[0], values[0]};
}

response ask_element(std::uint32_t x, const respondent& who) {
    const std::string_view element = codec::first_of(who.question);
    const std::string_view rounding = who.question.substr(element.size() + 1);
    const codec::dialect& by = *codec::find_dialect(who.dialect);
    format::rounding_mode mode;
    mode.how = format::find_rounding(rounding)->id;
    const codec::conversion c = codec::conversion_of(by, *format::find_element_format(element),
                                                     mode, codec::saturates(by), false);
    const codec::converted q = codec::convert(c, x, 0);
    return {-1, 0, q.code, q.value};
}

std::string number(float x) {
    if (std::isnan(x)) return "NaN";
    if (std::isinf(x)) return x < 0 ? "-Inf" : "Inf";
    // Powers of two far from one are printed as such.
    int exponent = 0;
    if (std::frexp(x, &exponent) == 0.5f && (exponent > 20 || exponent < -9)) {
        return fmt::format("2^{}", exponent - 1);
    }
    return fmt::format("{}", x);
}

}  // namespace

std::span<const disagreement> disagreements() { return disagreement_rows; }

response ask(const disagreement& d, const respondent& who) {
    switch (d.kind) {
        case probe::row: {
            std::vector<float> row;
            for (const std::uint32_t bits : d.input) row.push_back(base::float_from_bits(bits));
            return ask_row(row, codec::parse_block_recipe(who.question));
        }
        case probe::element:
            return ask_element(d.input[0], who);
        case probe::e8m0:
            break;
    }
    const codec::dialect& by = *codec::find_dialect(who.dialect);
    codec::require_e8m0(by);
    const int code = codec::convert_e8m0(by, d.input[0], false, true);
    return {code, static_cast<float>(format::decode_e8m0(code)), -1, 0};
}

std::string to_string(const response& r) {
    std::string out;
    const bool has_scale = r.scale_code >= 0 || r.scale != 0;
    if (has_scale) {
        const std::string code =
            r.scale_code >= 0 ? fmt::format("{:#04x} = ", r.scale_code) : std::string();
        out = fmt::format("scale {}{}", code, number(r.scale));
    }
    if (r.code < 0) return out;
    return fmt::format("{}{}element {:#04x} = {}", out, has_scale ? ", " : "", r.code,
                       number(r.value));
}

std::string input_text(const disagreement& d) {
    std::string out;
    for (std::size_t i = 0; i < d.input.size();) {
        std::size_t same = i + 1;
        while (same < d.input.size() && d.input[same] == d.input[i]) ++same;
        const std::size_t count = same - i;
        const std::string value = number(base::float_from_bits(d.input[i]));
        if (!out.empty()) out += ", ";
        out += count > 1 ? fmt::format("{} times {}", count, value)
                         : fmt::format("{} ({:#010x})", value, d.input[i]);
        i = same;
    }
    return out;
}

}  // namespace mx::conformance
