// SPDX-License-Identifier: Apache-2.0
// Zip archives made of bytes.
#pragma once

#include <zip.h>

#include <string>
#include <vector>

#include "tests/io/scratch_dir.hpp"

namespace mx::test {

struct member {
    std::string name;
    std::string bytes;
    bool packed = false;
};

/// Writes an archive and returns its path.
inline std::string write_zip(const std::string& path, const std::vector<member>& members) {
    int problem = 0;
    zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &problem);
    REQUIRE(zip != nullptr);
    for (const member& each : members) {
        zip_source_t* source = zip_source_buffer(zip, each.bytes.data(), each.bytes.size(), 0);
        const zip_int64_t index = zip_file_add(zip, each.name.c_str(), source, 0);
        REQUIRE(index >= 0);
        zip_set_file_compression(zip, static_cast<zip_uint64_t>(index),
                                 each.packed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
    }
    REQUIRE(zip_close(zip) == 0);
    return path;
}

}  // namespace mx::test
