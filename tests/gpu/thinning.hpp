// SPDX-License-Identifier: Apache-2.0
// The extent of a test: all cases, or with `--every N` one case in N, for tools that check every
// instruction and are slow.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace mx::tests {

inline std::uint64_t every_of(int argc, char** argv) {
    if (argc == 1) return 1;
    const std::uint64_t every = argc == 3 && std::string_view(argv[1]) == "--every"
                                    ? std::strtoull(argv[2], nullptr, 10)
                                    : 0;
    if (every == 0) throw std::runtime_error("give nothing, or --every N");
    return every;
}

}  // namespace mx::tests
