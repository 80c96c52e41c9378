// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-a-reader.md: the format is listed and recognised, its values are read, and
// files that are cut, false or misnamed are refused.
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/io/readers.hpp"
#include "libmx/io/writer.hpp"
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;

namespace {

std::string plain_file(std::uint64_t rows, std::uint64_t columns) {
    std::string bytes = "PLAINF32" + little(rows, 8) + little(columns, 8);
    for (const std::uint32_t code : {0x3f800000u, 0x40000000u, 0xc0400000u}) {  // 1, 2, -3
        bytes += little(code, 4);
    }
    return bytes;
}

}  // namespace

TEST_CASE("a reader that was added by one row is listed and reads") {
    has(io::readable_formats(), "npy, plain, ");
    const scratch_dir dir;
    const auto file = io::open_model(dir.file("w.plain", plain_file(1, 3)));
    REQUIRE(file->tensors().size() == 1);
    CHECK(file->tensors()[0].shape == tensor::shape{1, 3});
    CHECK(values(*file, "w") == std::vector<float>{1, 2, -3});
    // Writers refuse its ending.
    has(error_of(base::error_kind::usage, [] { io::check_ending("w.plain", {".npy"}); }),
        "cannot write .plain here");
}

TEST_CASE("a reader that was added refuses what is wrong") {
    const scratch_dir dir;
    const std::string sound = plain_file(1, 3);
    for (std::size_t size = 0; size < sound.size(); ++size) {
        CAPTURE(size);
        has(open_error(dir.file("cut.plain", sound.substr(0, size))), "cut.plain: ");
    }
    has(open_error(dir.file("w", plain_file(2, 3))), "2 x 3 float32 do not fit the 12 bytes");
    has(open_error(dir.file("w", plain_file(std::uint64_t{1} << 40, std::uint64_t{1} << 40))),
        "do not fit the 12 bytes");
    // Named as one, and nothing else.
    has(open_error(dir.file("w.plain", std::string("\1\2\3", 3))), "w.plain");
}
