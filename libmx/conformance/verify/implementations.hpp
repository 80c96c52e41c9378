// SPDX-License-Identifier: Apache-2.0
// THE LIST of implementation names in the tensors of vector files, and the dialect of each.
#pragma once

#include <array>
#include <string_view>

#include "libmx/base/named.hpp"
#include "libmx/codec/dialects.hpp"

namespace mx::conformance::verify {

struct implementation {
    std::string_view name;
    codec::dialect_id by;
    bool saturate = true;
    bool toward_zero = false;  ///< E8M0 only: the power of two below
};

inline constexpr std::array implementations{
    // Conversions to element formats, UE4M3 and UE5M3.
    implementation{"cuda", codec::dialect_id::nvidia},
    implementation{"cuda_abs", codec::dialect_id::nvidia},
    implementation{"cuda_sat", codec::dialect_id::nvidia},
    implementation{"cuda_nosat", codec::dialect_id::nvidia, false},
    implementation{"ml_dtypes", codec::dialect_id::ml_dtypes, false},
    implementation{"ml_dtypes_sat", codec::dialect_id::ml_dtypes},
    implementation{"gfloat", codec::dialect_id::gfloat},
    implementation{"microxcaling", codec::dialect_id::microxcaling},
    implementation{"torchao", codec::dialect_id::torchao},
    implementation{"quark", codec::dialect_id::quark},
    implementation{"quark_unclamped", codec::dialect_id::quark, false},
    implementation{"alto", codec::dialect_id::alto},
    implementation{"ggml", codec::dialect_id::ggml},
    // Conversions to E8M0.
    implementation{"cuda.rp_sat", codec::dialect_id::nvidia},
    implementation{"cuda.rp_satfinite", codec::dialect_id::nvidia},
    implementation{"cuda.rp_nosat", codec::dialect_id::nvidia, false},
    implementation{"cuda.rz_sat", codec::dialect_id::nvidia, true, true},
    implementation{"cuda.rz_satfinite", codec::dialect_id::nvidia, true, true},
    implementation{"cuda.rz_nosat", codec::dialect_id::nvidia, false, true},
    implementation{"ml_dtypes.rne", codec::dialect_id::ml_dtypes},
    implementation{"te.fallback", codec::dialect_id::te},
    implementation{"cutlass.fallback", codec::dialect_id::cutlass},
    implementation{"torchao.rceil", codec::dialect_id::torchao},
};

/// The row named `name`, or nullptr.
constexpr const implementation* find_implementation(std::string_view name) {
    return base::find_named(implementations, name);
}

}  // namespace mx::conformance::verify
