// SPDX-License-Identifier: Apache-2.0
// Uses a header-only and a compiled part of the library, and its error type.
#include <cstdio>

#include "libmx/base/status.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/tensor/shape.hpp"

int main() {
    const mx::format::element_format* e2m1 = mx::format::find_element_format("e2m1");
    const auto elements = mx::tensor::element_count({6, 7});
    if (e2m1 == nullptr || e2m1->bits() != 4 || elements != 42) return 1;
    try {
        throw mx::base::error(mx::base::error_kind::input, "as expected");
    } catch (const mx::base::error& e) {
        std::printf("%s: %d bits, %s elements\n", e.what(), e2m1->bits(),
                    mx::tensor::to_string({6, 7}).c_str());
    }
    return 0;
}
