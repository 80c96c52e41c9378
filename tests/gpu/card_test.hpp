// SPDX-License-Identifier: Apache-2.0
// Shared by the tests on a GPU: which cases to run, and their results.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "libmx/base/cuda/device.hpp"

namespace mx::tests {

/// The cases to run: all; with `--every N` one in N, for tools that check every instruction and are
/// slow; with `--only TEXT` those of the groups whose name has this text.
struct selection {
    std::uint64_t every = 1;
    std::string_view only;

    selection(int argc, char** argv) {
        for (int i = 1; i + 1 < argc; i += 2) {
            const std::string_view option = argv[i];
            if (option == "--every") every = std::strtoull(argv[i + 1], nullptr, 10);
            if (option == "--only") only = argv[i + 1];
            if (option != "--every" && option != "--only") every = 0;
        }
        if (every == 0 || argc % 2 == 0) {
            throw std::runtime_error("the options are --every N and --only TEXT");
        }
    }
    bool wants(std::string_view group) const { return group.find(only) != group.npos; }
    /// How many of `cases` should run at least.
    std::uint64_t least(std::uint64_t cases) const { return only.empty() ? cases / every : 0; }
};

/// Counts cases, and prints those that differ.
class case_count {
  public:
    void operator()(const std::string& what, const std::string& difference) {
        ++cases_;
        if (difference.empty()) return;
        ++different_;
        std::cout << what << ": " << difference << std::endl;
    }
    /// The exit code: 0 if more than `least` cases ran and none differs.
    int result(std::uint64_t least) const {
        std::cout << cases_ << " cases, " << different_ << " differ\n";
        return cases_ > least && different_ == 0 ? 0 : 1;
    }

  private:
    std::uint64_t cases_ = 0, different_ = 0;
};

/// The exit code that compare(selection) returns, 77 without a GPU, 1 with a message if it throws.
template <typename Compare>
int exit_code_of(int argc, char** argv, Compare&& compare) {
    try {
        const selection cases(argc, argv);
        const std::string missing = base::cuda::missing();
        if (missing.empty()) return compare(cases);
        std::cout << "skipped: backend cuda: " << missing << "\n";
        return 77;
    } catch (const std::exception& e) {
        std::cout << e.what() << "\n";
        return 1;
    }
}

}  // namespace mx::tests
