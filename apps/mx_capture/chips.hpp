// SPDX-License-Identifier: Apache-2.0
// THE LIST of chips that can be recorded, with the instructions of each.
#pragma once

#include <array>
#include <string_view>

#include "libmx/base/named.hpp"

namespace mx::capture {

struct chip {
    std::string_view name;          ///< the target its code is compiled for
    int major = 0, minor = 0;       ///< compute capability
    std::string_view architecture;  ///< whose models are compared, as named in vector files
    bool fp8 = false;               ///< fp8 in mma.sync and cvt
    bool wgmma = false;
    bool tcgen05 = false;
    bool scaled_mma = false;      ///< mma.sync of fp6 and fp4, and with block scales
    bool narrow_cvt = false;      ///< cvt of fp6, fp4 and ue8m0
    bool stochastic_cvt = false;  ///< cvt.rs
};

inline constexpr std::array chips{
    chip{"sm_80", 8, 0, "sm_80"},
    chip{"sm_86", 8, 6, "sm_80 (recorded on sm_86, which has no model of its own)"},
    chip{"sm_89", 8, 9, "sm_89", true},
    chip{"sm_90a", 9, 0, "sm_90", true, true},
    chip{"sm_100a", 10, 0, "sm_100", true, false, true, false, true, true},
    chip{"sm_103a", 10, 3, "sm_100 (recorded on sm_103a, which has no model of its own)", true,
         false, true, false, true, true},
    chip{"sm_110a", 11, 0, "sm_100 (recorded on sm_110a, which has no model of its own)", true,
         false, true, false, true},
    chip{"sm_120a", 12, 0, "sm_120", true, false, false, true, true},
    chip{"sm_121a", 12, 1, "sm_120 (recorded on sm_121a, which has no model of its own)", true,
         false, false, true, true},
};

/// The row of this compute capability, or nullptr.
constexpr const chip* find_chip(int major, int minor) {
    for (const chip& c : chips) {
        if (c.major == major && c.minor == minor) return &c;
    }
    return nullptr;
}

/// The row of this name, or nullptr.
constexpr const chip* find_chip(std::string_view name) { return base::find_named(chips, name); }

}  // namespace mx::capture
