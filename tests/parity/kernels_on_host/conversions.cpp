// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "libmx/base/half.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/element_formats.hpp"
#include "tests/parity/kernels_on_host/fibres.hpp"

namespace card {
namespace {

// "cvt.rn.satfinite.e4m3x2.f32" and "cvt.rn.f16x2.e4m3x2" name e4m3.
const mx::format::element_format& format_of(std::string_view ptx) {
    for (const auto& f : mx::format::element_formats) {
        if (ptx.find("." + std::string(f.name) + "x2") != ptx.npos) return f;
    }
    throw failure("no format in " + std::string(ptx));
}

}  // namespace

std::uint32_t narrowed(const char* ptx, std::uint32_t bits) {
    const auto element = mx::format::params_of(format_of(ptx), false);
    return mx::format::cast_code(element, {}, bits, true, 0);
}

std::uint32_t widened(const char* ptx, std::uint32_t code) {
    return mx::base::half_saturated(mx::format::decode(format_of(ptx), code));
}

}  // namespace card
