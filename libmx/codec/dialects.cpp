// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/dialects.hpp"

#include <array>

#include "libmx/scale/scale_rules.hpp"

namespace mx::codec {
namespace {

constexpr evidence R = evidence::run;
constexpr evidence T = evidence::transcribed;
constexpr evidence S = evidence::source;
constexpr evidence C = evidence::choice;

constexpr std::string_view fp_elements = "e4m3 e5m2 e3m2 e2m3 e2m1";

// The names of the rules without random bits, each once.
struct rule_names {
    std::array<char, 256> text{};
    std::size_t size = 0;
};
constexpr rule_names ocp_rules = [] {
    rule_names all;
    for (const scale::scale_rule& rule : scale::scale_rules) {
        if (scale::is_random(rule) || scale::find_scale_rule(rule.name) != &rule) continue;
        if (all.size != 0) all.text[all.size++] = ' ';
        for (const char c : rule.name) all.text[all.size++] = c;
    }
    return all;
}();

// The specification, with our choices where it is silent. Other rows list their differences.
constexpr dialect ocp_row{
    .id = dialect_id::ocp,
    .name = "ocp",
    .summary = "OCP MX 1.0 in exact arithmetic",
    .source = "OCP MX 1.0; graphcore-research/gfloat@b142762",
    .verified_by = "vectors: gfloat blocks of six formats, all scale rules against torchao",
    .blocks = true,
    .rules = {ocp_rules.text.data(), ocp_rules.size},
    .roundings = "rtne away zero up down stochastic nearest-ties-to-zero",
    .elements = "",
    .float_scales = "ue4m3 ue5m3 ue5m3_inf",
    .log2 = {log2_kind::exact, R},
    .even = {even_kind::element, R},
    .emax = {emax_kind::format, R},
    .rceil = {rceil_kind::exact, R},
    .inf = {inf_amax::nan, C},
    .nan = {nan_amax::nan, C},
    .zero = {zero_block::code_0, R},
    .storage = {scale_storage::code, R},
    .arithmetic = {element_kind::exact, R},
    .sign_of_zero = {zero_sign::kept, R},
    .inf_value = {inf_element::saturate, R},
    .nan_value = {nan_element::nan_or_max, C},
    .stochastic = {stochastic_kind::canonical, R},
    .integers = {int_range::ocp, R},
    .two_level = {two_level_kind::exact, C},
    .e8m0 = {e8m0_cast::up, C},
    .e4m3_reaches_480 = {false, R},
    .e4m3_overflow_is_nan = {false, R},
    .low_byte_of_code = {false, R},
    .at_code_0 = {code_0_divisor::scale, R},
    .random_bits = {32, C},
};

// The specification's row, with `mark` as the evidence for every behaviour.
constexpr dialect known_by(evidence mark) {
    dialect d = ocp_row;
    d.float_scales = "ue4m3";
    d.log2.mark = d.even.mark = d.emax.mark = d.rceil.mark = d.inf.mark = mark;
    d.nan.mark = d.zero.mark = d.storage.mark = d.arithmetic.mark = mark;
    d.sign_of_zero.mark = d.inf_value.mark = d.nan_value.mark = d.stochastic.mark = mark;
    d.integers.mark = d.two_level.mark = d.e8m0.mark = d.e4m3_reaches_480.mark = mark;
    d.e4m3_overflow_is_nan.mark = d.low_byte_of_code.mark = d.random_bits.mark = mark;
    d.at_code_0.mark = mark;
    return d;
}

constexpr dialect microxcaling_row() {
    dialect d = known_by(R);
    d.id = dialect_id::microxcaling;
    d.name = "microxcaling";
    d.summary = "the PyTorch path on float32 tensors";
    d.source = "microsoft/microxcaling@7bc4195";
    d.verified_by = "vectors: blocks of all formats under three roundings, scales, elements";
    d.rules = "floor";
    d.roundings = "away rtne zero";
    d.log2 = {log2_kind::float32, R};
    d.zero = {zero_block::tiny_amax, R};
    d.arithmetic = {element_kind::microxcaling, R};
    d.sign_of_zero = {zero_sign::input_plus, R};
    d.inf_value = {inf_element::keep, R};
    d.nan_value = {nan_element::keep, R};
    d.stochastic = {stochastic_kind::none, R};
    d.integers = {int_range::symmetric, R};
    d.two_level = {two_level_kind::none, S};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect microxcaling_bf16_row() {
    dialect d = microxcaling_row();
    d.id = dialect_id::microxcaling_bf16;
    d.name = "microxcaling-bf16";
    d.summary = "the PyTorch path on bfloat16 tensors: all arithmetic in bfloat16";
    d.verified_by = "vectors: blocks of e4m3, e2m1, int8";
    d.log2 = {log2_kind::bfloat16, R};
    d.arithmetic = {element_kind::bfloat16, R};
    return d;
}

constexpr dialect microxcaling_native_row() {
    dialect d = microxcaling_row();
    d.id = dialect_id::microxcaling_native;
    d.name = "microxcaling-native";
    d.summary = "the C++/CUDA path (custom_cuda)";
    d.verified_by = "vectors: host functions on blocks of all formats; the kernels were only read";
    d.log2 = {log2_kind::exact, R};
    d.zero = {zero_block::code_0, R};
    d.arithmetic = {element_kind::exact, R};
    d.sign_of_zero = {zero_sign::plus, R};
    return d;
}

constexpr dialect torchao_row() {
    dialect d = known_by(R);
    d.id = dialect_id::torchao;
    d.name = "torchao";
    d.summary =
        "to_mx, and NVFP4 with block scales of at least 2^-6: a commit of 2026-08-21, not released";
    d.source = "pytorch/ao@36027d8";
    d.verified_by = "vectors: to_mx blocks of five formats and four rules, scales, NVFP4 blocks";
    d.rules = "floor ceil even rceil two-level single-level";
    d.roundings = "rtne";
    d.elements = fp_elements;
    d.rceil = {rceil_kind::reciprocal, R};
    d.nan_value = {nan_element::nan_or_inner, R};
    d.stochastic = {stochastic_kind::none, S};
    d.two_level = {two_level_kind::torchao, T};
    d.e8m0 = {e8m0_cast::up_nan, R};
    return d;
}

constexpr dialect torchao_0_18_row() {
    dialect d = torchao_row();
    d.id = dialect_id::torchao_0_18;
    d.name = "torchao@0.18";
    d.summary = "to_mx with RCEIL on a float32 log2, and NVFP4 with block scales of at least 2^-6";
    d.source = "torchao 0.18.0 of PyPI, PyTorch 2.15.0, CPU";
    d.version = "0.18.0";
    d.verified_by =
        "vectors: to_mx blocks of five formats and four rules, NVFP4 blocks of both levels";
    d.rceil = {rceil_kind::log2, R};
    d.inf = {inf_amax::power_128, R};
    d.nan = {nan_amax::nan_alone, R};
    d.at_code_0 = {code_0_divisor::smallest_normal, R};
    d.two_level.mark = R;
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

// Describes what was run of that release, which excludes its floor, ceil and even.
constexpr dialect torchao_0_15_row() {
    dialect d = torchao_row();
    d.id = dialect_id::torchao_0_15;
    d.name = "torchao@0.15";
    d.summary = "to_mx with RCEIL on a float32 log2, and NVFP4 that divides";
    d.source = "torchao 0.15.0 of PyPI, PyTorch 2.9.1, CPU";
    d.version = "0.15.0";
    d.verified_by = "vectors: RCEIL blocks of five formats, NVFP4 blocks of both levels";
    d.rules = "rceil two-level single-level";
    d.log2 = {log2_kind::float32, R};
    d.rceil = {rceil_kind::log2, R};
    d.inf = {inf_amax::saturate, R};
    d.at_code_0 = {code_0_divisor::one, R};
    d.two_level = {two_level_kind::torchao_divides, R};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect te_row() {
    dialect d = known_by(T);
    d.id = dialect_id::te;
    d.name = "te";
    d.summary = "Transformer Engine MXFP8 and NVFP4";
    d.source = "NVIDIA/TransformerEngine@d0067d0";
    d.verified_by =
        "vectors: MXFP8 and NVFP4 blocks (row scales, four-over-six, UE5M3 too), scales; "
        "conversions and NVFP4's reference run, kernels and UE5M3 (branch of #3325) read";
    d.rules = "rceil two-level amax amax-pow2";
    d.float_scales = "ue4m3 ue5m3";
    d.roundings = "rtne stochastic";
    d.elements = "e4m3 e5m2 e2m1";
    d.rceil = {rceil_kind::reciprocal, T};
    d.inf = {inf_amax::finite_max, T};
    d.nan = {nan_amax::ignored, T};
    d.nan_value = {nan_element::nan_or_max, R};
    d.random_bits = {8, T};
    d.two_level = {two_level_kind::te, T};
    d.e8m0 = {e8m0_cast::up, R};
    return d;
}

constexpr dialect nvidia_row() {
    dialect d = known_by(R);
    d.id = dialect_id::nvidia;
    d.name = "nvidia";
    d.summary = "the conversions of the CUDA headers; blocks as amax / max into E8M0, rounded up";
    d.source = "CUDA 13.0 headers cuda_fp8, cuda_fp6, cuda_fp4 (host fallback)";
    d.verified_by = "vectors: all element conversions, E8M0, scales";
    d.rules = "rceil";
    d.roundings = "rtne zero";
    d.elements = fp_elements;
    d.rceil = {rceil_kind::quotient, R};
    d.inf = {inf_amax::saturate, R};
    d.stochastic = {stochastic_kind::none, S};
    d.two_level = {two_level_kind::none, S};
    return d;
}

constexpr dialect fbgemm_row() {
    dialect d = known_by(R);
    d.id = dialect_id::fbgemm;
    d.name = "fbgemm";
    d.summary = "the CPU reference of MX4";
    d.source = "pytorch/FBGEMM@71d6f8b";
    d.verified_by = "vectors: CPU reference blocks and scales; Triton and CUDA kernels read only";
    d.rules = "even ceil floor nearest stochastic";
    d.roundings = "away stochastic";
    d.elements = "e2m1 e3m0";
    d.log2 = {log2_kind::float32, R};
    d.even = {even_kind::fbgemm, R};
    d.emax = {emax_kind::exponent_bits, R};
    d.inf = {inf_amax::clamp_252, R};
    d.nan = {nan_amax::zero, R};
    d.arithmetic = {element_kind::fbgemm, R};
    d.stochastic = {stochastic_kind::add_then_round, R};
    d.two_level = {two_level_kind::none, S};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect ggml_row() {
    dialect d = known_by(T);
    d.id = dialect_id::ggml;
    d.name = "ggml";
    d.summary = "MXFP4 and NVFP4 of llama.cpp";
    d.source = "ggml-org/llama.cpp@01243c5 (quants), @0096646 (helpers)";
    d.verified_by = "vectors: blocks and scales of a transcription";
    d.rules = "floor single-level";
    d.roundings = "nearest-ties-to-zero";
    d.elements = "e2m1";
    d.log2 = {log2_kind::float32, T};
    d.inf = {inf_amax::finite_max, C};
    d.nan = {nan_amax::ignored, T};
    d.low_byte_of_code = {true, T};
    d.sign_of_zero = {zero_sign::plus, T};
    d.nan_value = {nan_element::zero, T};
    d.stochastic = {stochastic_kind::none, S};
    d.two_level = {two_level_kind::ggml, T};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect modelopt_row() {
    dialect d = known_by(T);
    d.id = dialect_id::modelopt;
    d.name = "modelopt";
    d.summary = "MXFP4 (PyTorch path) and NVFP4 of TensorRT Model Optimizer";
    d.source = "NVIDIA/TensorRT-Model-Optimizer@5a4242f";
    d.verified_by = "vectors: MXFP4 blocks and scales of a transcription; NVFP4 read only";
    d.rules = "rceil two-level";
    d.roundings = "nearest-ties-to-zero";
    d.two_level_roundings = "rtne";
    d.elements = "e2m1";
    d.rceil = {rceil_kind::log2, T};
    d.inf = {inf_amax::zero, T};
    d.nan = {nan_amax::zero, T};
    d.sign_of_zero = {zero_sign::input_minus, T};
    d.nan_value = {nan_element::zero, T};
    d.stochastic = {stochastic_kind::none, S};
    d.two_level = {two_level_kind::modelopt, S};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect quark_row() {
    dialect d = known_by(T);
    d.id = dialect_id::quark;
    d.name = "quark";
    d.summary = "fake_quantize_mx and AMDFP4: scales stay float32";
    d.source = "amd/Quark@1d27b55; AMDFP4: amd-quark 0.13";
    d.verified_by = "vectors: blocks and scales of a transcription; AMDFP4's conversions run";
    d.rules = "even floor ceil enhanced single-level";
    d.float_scales = "ue5m3";
    d.roundings = "rtne";
    d.elements = "e4m3 e5m2 e3m2 e2m3 e2m1";
    d.log2 = {log2_kind::float32, T};
    d.even = {even_kind::element_capped, T};
    d.inf = {inf_amax::keep, T};
    d.zero = {zero_block::f32_epsilon, T};
    d.storage = {scale_storage::float32, T};
    d.sign_of_zero = {zero_sign::plus, T};
    d.inf_value = {inf_element::keep, T};
    d.nan_value = {nan_element::keep, T};
    d.stochastic = {stochastic_kind::none, S};
    d.integers = {int_range::symmetric, S};
    d.two_level = {two_level_kind::quark, R};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect compressed_tensors_row() {
    dialect d = known_by(T);
    d.id = dialect_id::compressed_tensors;
    d.name = "compressed-tensors";
    d.summary = "generate_mx_scales: even at one mantissa bit for MXFP4 and MXFP8";
    d.source = "vllm-project/compressed-tensors@ac8e2ba";
    d.verified_by = "vectors: scales of a transcription; elements and NVFP4 read only";
    d.rules = "even two-level";
    d.roundings = "rtne";
    d.elements = "e2m1 e4m3";
    d.even = {even_kind::one_bit, T};
    d.inf = {inf_amax::nan, C};
    d.nan = {nan_amax::nan, C};
    d.zero = {zero_block::code_0, C};
    d.storage.mark = C;
    d.arithmetic = {element_kind::exact, S};
    d.sign_of_zero = {zero_sign::kept, C};
    d.inf_value = {inf_element::saturate, C};
    d.stochastic = {stochastic_kind::none, S};
    d.two_level = {two_level_kind::compressed_tensors, S};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect tetrajet_row() {
    dialect d = known_by(R);
    d.id = dialect_id::tetrajet;
    d.name = "tetrajet";
    d.summary = "the truncation-free quantizer (MXScale=1)";
    d.source = "thu-ml/TetraJet-MXFP4Training@bbe9bd6";
    d.verified_by = "vectors: blocks of four formats, scales";
    d.rules = "ceil-div-max";
    d.roundings = "rtne stochastic";
    d.elements = "e2m1 e2m3 e3m0 e3m2 e4m3";
    d.log2 = {log2_kind::float32, R};
    d.zero = {zero_block::as_1e_8, R};
    d.arithmetic = {element_kind::fraction_even, R};
    d.sign_of_zero = {zero_sign::input_plus, R};
    d.two_level = {two_level_kind::none, S};
    d.e8m0 = {e8m0_cast::none, S};
    d.e4m3_reaches_480 = {true, R};
    return d;
}

constexpr dialect amd_hip_row() {
    dialect d = known_by(T);
    d.id = dialect_id::amd_hip;
    d.name = "amd-hip";
    d.summary = "host conversions of the HIP OCP header; the scale is the caller's";
    d.source = "HIP OCP header as vendored in triton-lang/triton@d221440";
    d.verified_by = "vectors: stochastic conversions of a transcription; no hardware";
    d.rules = "floor";
    d.roundings = "rtne stochastic";
    d.elements = fp_elements;
    d.log2.mark = d.emax.mark = d.zero.mark = d.storage.mark = C;  // the caller computes the scale
    d.inf = {inf_amax::nan, C};
    d.nan = {nan_amax::nan, C};
    d.nan_value = {nan_element::nan_or_max, S};
    d.two_level = {two_level_kind::none, S};
    d.e8m0 = {e8m0_cast::none, S};
    d.e4m3_overflow_is_nan = {true, T};
    d.random_bits = {0, T};
    return d;
}

constexpr dialect systems_scaling_row() {
    dialect d = microxcaling_row();
    d.id = dialect_id::systems_scaling;
    d.name = "systems-scaling";
    d.summary =
        "microxcaling with the exponent bump of arXiv 2506.20752 as coded: per position "
        "across the blocks of a row";
    d.source = "KempnerInstitute/systems-scaling@99d244a";
    d.verified_by = "vectors: rows of two blocks with and without the bump";
    d.rules = "floor-bump floor";
    return d;
}

constexpr dialect gfloat_row() {
    dialect d = known_by(R);
    d.id = dialect_id::gfloat;
    d.name = "gfloat";
    d.summary = "conversions, and its stochastic rounding of a rounded fraction";
    d.source = "graphcore-research/gfloat@b142762";
    d.verified_by = "vectors: element and stochastic conversions";
    d.blocks = false;
    d.rules = "";
    d.nan_value = {nan_element::keep, R};
    d.stochastic = {stochastic_kind::rounded_delta, R};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr dialect ml_dtypes_row() {
    dialect d = known_by(R);
    d.id = dialect_id::ml_dtypes;
    d.name = "ml_dtypes";
    d.summary = "casts of JAX's NumPy types";
    d.source = "jax-ml/ml_dtypes@b793a6e";
    d.version = "0.6.0";
    d.verified_by = "vectors: all element conversions, E8M0; casts of NumPy arrays run";
    d.blocks = false;
    d.rules = "";
    d.roundings = "rtne";
    d.elements = fp_elements;
    d.float_scales = "";
    d.inf_value = {inf_element::special, R};
    d.nan_value = {nan_element::nan_or_zero, R};
    d.stochastic = {stochastic_kind::none, S};
    d.e8m0 = {e8m0_cast::nearest, R};
    return d;
}

constexpr dialect cutlass_row() {
    dialect d = known_by(S);
    d.id = dialect_id::cutlass;
    d.name = "cutlass";
    d.summary = "software conversion to E8M0 (the PTX path saturates Inf, this one does not)";
    d.source = "NVIDIA/cutlass@7107b05";
    d.verified_by = "vectors: E8M0 of a transcription";
    d.blocks = false;
    d.rules = "";
    d.roundings = "rtne";
    d.elements = fp_elements;
    d.inf = {inf_amax::nan, T};
    d.stochastic = {stochastic_kind::none, S};
    d.e8m0 = {e8m0_cast::up_inf_nan, T};
    return d;
}

constexpr dialect alto_row() {
    dialect d = known_by(R);
    d.id = dialect_id::alto;
    d.name = "alto";
    d.summary = "AMDFP4 and NVFP4 of ALTO: block scales never become zero";
    d.source = "AMD-AGI/ALTO@74e251d";
    d.verified_by = "vectors: AMDFP4 blocks and conversions; NVFP4 and Triton kernels read only";
    d.rules = "two-level single-level";
    d.roundings = "rtne";
    d.elements = "e2m1";
    d.float_scales = "ue5m3 ue4m3";
    d.inf = {inf_amax::finite_max, R};
    d.nan = {nan_amax::zero, R};
    d.stochastic = {stochastic_kind::none, S};
    d.two_level = {two_level_kind::alto, R};
    d.e8m0 = {e8m0_cast::none, S};
    return d;
}

constexpr std::array dialect_rows{
    ocp_row,
    microxcaling_row(),
    microxcaling_bf16_row(),
    microxcaling_native_row(),
    torchao_row(),
    torchao_0_18_row(),
    torchao_0_15_row(),
    te_row(),
    nvidia_row(),
    fbgemm_row(),
    ggml_row(),
    modelopt_row(),
    quark_row(),
    compressed_tensors_row(),
    tetrajet_row(),
    amd_hip_row(),
    systems_scaling_row(),
    gfloat_row(),
    ml_dtypes_row(),
    cutlass_row(),
    alto_row(),
};

constexpr bool rows_stand_at_their_ids() {
    for (std::size_t i = 0; i < dialect_rows.size(); ++i) {
        if (static_cast<std::size_t>(dialect_rows[i].id) != i) return false;
    }
    return true;
}
static_assert(rows_stand_at_their_ids());

}  // namespace

std::span<const dialect> dialects() { return dialect_rows; }

const dialect& row_of(dialect_id id) { return dialect_rows[static_cast<std::size_t>(id)]; }

const dialect* find_dialect(std::string_view name) {
    for (const dialect& d : dialect_rows) {
        if (d.name == name) return &d;
    }
    const std::size_t at = name.find('@');
    if (at == std::string_view::npos) return nullptr;
    const std::string_view version = name.substr(at + 1);
    if (version.empty()) return nullptr;
    for (const dialect& d : dialect_rows) {
        if (family_of(d) != name.substr(0, at)) continue;
        const std::string_view commit = d.source.substr(d.source.find('@') + 1);
        const bool newest = d.name.size() == at;
        if (newest ? version == d.version || version == commit : version == d.version) return &d;
    }
    return nullptr;
}

std::string_view family_of(const dialect& d) { return d.name.substr(0, d.name.find('@')); }

bool lists(std::string_view list_of_words, std::string_view word) {
    while (!list_of_words.empty()) {
        const std::size_t end = list_of_words.find(' ');
        if (list_of_words.substr(0, end) == word) return true;
        if (end == std::string_view::npos) break;
        list_of_words.remove_prefix(end + 1);
    }
    return false;
}

std::string_view first_of(std::string_view list_of_words) {
    return list_of_words.substr(0, list_of_words.find(' '));
}

}  // namespace mx::codec
