// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/simd/targets.hpp"

#include <hwy/highway.h>
#include <hwy/targets.h>

namespace mx::base::simd {

bool supported(target t) {
    // Virtual machines trap the instruction that says what there is.
    static const auto has = hwy::SupportedTargets() & HWY_TARGETS;
    switch (t) {
        case target::sse4:
            return (has & HWY_SSE4) != 0;
        case target::avx2:
            return (has & HWY_AVX2) != 0;
        case target::avx512:
            return (has & HWY_AVX3) != 0;
        case target::neon:
            return (has & HWY_NEON) != 0;
    }
    return false;
}

}  // namespace mx::base::simd
