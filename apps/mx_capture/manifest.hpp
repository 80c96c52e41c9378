// SPDX-License-Identifier: Apache-2.0
// What a folder holds and where it comes from: manifest.json, schema mx.capture/1.
#pragma once

#include <string>
#include <vector>

#include "apps/mx_capture/parts.hpp"
#include "libmx/report/record.hpp"

namespace mx::capture {

struct manifest {
    struct failure {
        std::string part, reason;
    };

    device_facts facts;
    chip target;
    amounts how_much;
    std::string only;     ///< parts whose file name has this in it; "": all
    std::string date;     ///< UTC
    std::string program;  ///< SHA-256 of the program that recorded
    std::vector<report::record> files;
    std::vector<failure> failures;

    /// Takes size and SHA-256 of `folder`/`file`.
    void add_file(const std::string& folder, const std::string& file);
    void write(const std::string& path) const;
};

}  // namespace mx::capture
