// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/element_cast.hpp"

#include "libmx/codec/dialect_element.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {

element_cast cast_to_e8m0(const dialect& by, format::rounding how, bool saturate) {
    require_e8m0(by);
    element_cast c{{&by, {}, {}, saturate, {}}, true};
    c.number.mode.how = how;
    for (int code = 0; code < 256; ++code) {
        c.number.value[code] = static_cast<float>(format::decode_e8m0(code));
    }
    return c;
}

}  // namespace mx::codec
