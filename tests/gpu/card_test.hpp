// SPDX-License-Identifier: Apache-2.0
// Shared by the mains of tests on a GPU.
#pragma once

#include <exception>
#include <iostream>

namespace mx::tests {

/// The exit code that `compare` returns, or 1 with a message if it throws.
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
