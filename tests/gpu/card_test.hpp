// SPDX-License-Identifier: Apache-2.0
// What the mains of tests on a card share.
#pragma once

#include <exception>
#include <iostream>

namespace mx::tests {

/// The exit code that `compare` returns, or 1 with a word where it throws.
template <typename Compare>
int exit_code_of(Compare&& compare) {
    try {
        return compare();
    } catch (const std::exception& e) {
        std::cout << e.what() << "\n";
        return 1;
    }
}

}  // namespace mx::tests
