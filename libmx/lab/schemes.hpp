// SPDX-License-Identifier: Apache-2.0
// THE LIST of named schemes.
#pragma once

#include <array>
#include <string_view>

namespace mx::lab {

/// A named list of settings. `su.coded.NAME` follows the code published with arXiv 2506.20752
/// (KempnerInstitute/systems-scaling@99d244a); `su.told.NAME` follows the paper's text, in which
/// gains of layer norms are quantized as well. That code also quantizes the teacher of an MX run
/// (not of its interventions, which read stored labels): the setting teacher=quantized, which is
/// none of a scheme's, so that runs recorded before it keep their labels.
struct scheme {
    std::string_view name;
    std::string_view summary;
    std::string_view settings;  ///< as parse_settings takes them; they begin from float32
};

// Elements are rounded half away from zero and scales follow the floor rule: dialect microxcaling
// on bfloat16 values, in exact arithmetic.
#define MX_SU_CODED "vector=bf16 ln=bf16 ln-bias=frozen "
#define MX_SU_E4M3 "mxfp8:round=away"
#define MX_SU_E5M2 "mxfp8_e5m2:round=away"
#define MX_SU_TOLD MX_SU_CODED "ln-gain=" MX_SU_E4M3 " "
#define MX_SU_FORWARD_ONLY " backward=none vector-backward=fp32 ln-backward=fp32"

inline constexpr std::array schemes{
    scheme{"fp32", "float32 throughout", ""},
    scheme{"su.coded.no_mx_inject", "nothing is quantized, biases of layer norms train", ""},
    scheme{"su.coded.e4m3", "all six operands in MXFP8 E4M3, layer norms in bfloat16 steps",
           MX_SU_CODED "all=" MX_SU_E4M3},
    scheme{"su.coded.e5m2_bwd", "E5M2 backward; X of Wgrad keeps E4M3",
           MX_SU_CODED "forward=" MX_SU_E4M3 " backward=" MX_SU_E5M2 " wgrad-x=" MX_SU_E4M3},
    scheme{"su.coded.e2m3", "all six operands in MXFP6 E2M3",
           MX_SU_CODED "all=mxfp6_e2m3:round=away"},
    scheme{"su.coded.e2m1", "all six operands in MXFP4", MX_SU_CODED "all=mxfp4:round=away"},
    scheme{"su.coded.bump_exp", "exponents raised position by position, as the code does it",
           MX_SU_CODED "all=mxfp8:dialect=systems-scaling,scale=floor-bump"},
    scheme{"su.coded.no_ln_q", "layer norms in float32 up to eps, in bfloat16 from there on",
           MX_SU_CODED "all=" MX_SU_E4M3 " ln-statistics=fp32 ln-backward=fp32"},
    scheme{"su.coded.bf16_act", "activations in bfloat16, weights and gradients in E4M3",
           MX_SU_CODED "all=" MX_SU_E4M3 " x=bf16"},
    scheme{"su.coded.bf16_act_all", "weights in E4M3, all else in bfloat16",
           MX_SU_CODED "all=" MX_SU_E4M3 " x=bf16 dy=bf16"},
    scheme{"su.coded.no_bp_quant", "forward only: nothing is rounded backward",
           MX_SU_CODED "forward=" MX_SU_E4M3 MX_SU_FORWARD_ONLY},
    scheme{"su.coded.no_gelu_quant", "as e4m3: the student's GELU is float32 in any case",
           MX_SU_CODED "all=" MX_SU_E4M3},
    scheme{"su.coded.bf16_weight", "weights in bfloat16 forward; Dgrad keeps E4M3",
           MX_SU_CODED "all=" MX_SU_E4M3 " fprop-w=bf16"},
    scheme{"su.told.no_mx_inject", "float32 throughout", ""},
    scheme{"su.told.e4m3", "as coded, and gains in E4M3", MX_SU_TOLD "all=" MX_SU_E4M3},
    scheme{"su.told.e5m2_bwd", "all operands of the backward pass in E5M2, gains in E4M3",
           MX_SU_TOLD "forward=" MX_SU_E4M3 " backward=" MX_SU_E5M2},
    scheme{"su.told.e2m3", "all six operands and gains in MXFP6 E2M3",
           MX_SU_CODED "all=mxfp6_e2m3:round=away ln-gain=mxfp6_e2m3:round=away"},
    scheme{"su.told.e2m1", "all six operands and gains in MXFP4",
           MX_SU_CODED "all=mxfp4:round=away ln-gain=mxfp4:round=away"},
    scheme{"su.told.bump_exp", "the exponent of a block raised as the text says, gains too",
           MX_SU_CODED "all=mxfp8:scale=floor-bump,round=away "
                       "ln-gain=mxfp8:scale=floor-bump,round=away"},
    scheme{"su.told.no_ln_q", "layer norms in float32",
           "vector=bf16 ln-bias=frozen all=" MX_SU_E4M3},
    scheme{"su.told.bf16_act", "activations in bfloat16, gains in E4M3",
           MX_SU_TOLD "all=" MX_SU_E4M3 " x=bf16"},
    scheme{"su.told.bf16_act_all", "weights and gains in E4M3, all else in bfloat16",
           MX_SU_TOLD "all=" MX_SU_E4M3 " x=bf16 dy=bf16"},
    scheme{"su.told.no_bp_quant", "forward only, gains in E4M3",
           MX_SU_TOLD "forward=" MX_SU_E4M3 MX_SU_FORWARD_ONLY},
    scheme{"su.told.no_gelu_quant", "as e4m3: the student's GELU is float32 in any case",
           MX_SU_TOLD "all=" MX_SU_E4M3},
    scheme{"su.told.bf16_weight", "weights in bfloat16 in both products, gains in E4M3",
           MX_SU_TOLD "all=" MX_SU_E4M3 " w=bf16"},
    scheme{"hybrid.bf16_act",
           "MXFP8 weights with bfloat16 activations and gradients, rounded "
           "to nearest even; norms in float32",
           "vector=bf16-even x=bf16 dy=bf16 w=mxfp8"},
    scheme{"hybrid.bf16_act_fwd", "MXFP8 weights with bfloat16 activations, forward only",
           "vector=bf16-even forward=bf16 fprop-w=mxfp8 backward=none vector-backward=fp32"},
    scheme{"hybrid.fwd", "MXFP8 weights and activations, forward only",
           "vector=bf16-even forward=mxfp8 backward=none vector-backward=fp32"},
};

#undef MX_SU_CODED
#undef MX_SU_E4M3
#undef MX_SU_E5M2
#undef MX_SU_TOLD
#undef MX_SU_FORWARD_ONLY

}  // namespace mx::lab
