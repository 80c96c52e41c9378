// SPDX-License-Identifier: Apache-2.0
// Where one implementation departs from the codes of another: PREFIX.diff_index, .diff_bits and
// .diff_code list every finite input, its result and its code.
#pragma once

#include <string>
#include <vector>

#include "libmx/conformance/verify/element_inputs.hpp"

namespace mx::conformance::verify {

struct departure_list {
    std::string prefix;   ///< "bf16.quark"
    std::string by;       ///< the dialect that departs
    converter convert;    ///< the implementation
    converter reference;  ///< the one it departs from
};

/// Compares the list with where `convert` departs from `reference` on the finite inputs `x`.
/// Results that differ in the sign of zero only are not listed; where the metadata has their
/// number, it is compared, too.
void compare_departure_list(const vector_file& file, const vector_format& format,
                            const std::vector<std::uint32_t>& x, const departure_list& list,
                            comparison& found);

}  // namespace mx::conformance::verify
