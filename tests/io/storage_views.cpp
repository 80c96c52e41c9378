// SPDX-License-Identifier: Apache-2.0
// Bytes that several tensors have in common are counted once, and no tensor counts more than there
// is.
#include "libmx/io/storage_views.hpp"

#include <filesystem>
#include <numeric>

#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;

namespace {

// Bytes of float32 in storage "s" of 1024 bytes.
io::storage_view view(std::size_t tensor, std::uint64_t begin, std::uint64_t end,
                      std::vector<std::uint64_t> steps = {}) {
    return {"s", begin, end, tensor, 1024, 1024, std::move(steps)};
}

std::vector<io::tensor_info> counted(const std::vector<io::storage_view>& views,
                                     const std::vector<std::uint64_t>& bytes) {
    std::vector<io::tensor_info> tensors(views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
        tensors[i].name = "t" + std::to_string(i);
        tensors[i].bytes = bytes[i];
    }
    io::read_budget budget("f", 1024);
    io::count_storage_once(views, tensors, budget);
    return tensors;
}

std::vector<std::uint64_t> occupied(const std::vector<io::tensor_info>& tensors) {
    std::vector<std::uint64_t> all;
    for (const io::tensor_info& t : tensors) all.push_back(t.occupied_bytes());
    return all;
}

using sizes = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("storage: the first of equal views counts, and of nested ones the outer") {
    const auto equal = counted({view(0, 0, 1024), view(1, 0, 1024)}, {1024, 1024});
    CHECK(occupied(equal) == sizes{1024, 0});
    CHECK(equal[1].tied_to == "t0");
    const auto nested =
        counted({view(0, 0, 64), view(1, 0, 1024), view(2, 960, 1024)}, {64, 1024, 64});
    CHECK(occupied(nested) == sizes{0, 1024, 0});
    CHECK(nested[0].tied_to == "t1");
    CHECK(nested[2].tied_to == "t1");
}

TEST_CASE("storage: views that overlap count the rest, and neighbours all") {
    const auto overlapping = counted({view(0, 0, 600), view(1, 400, 1024)}, {600, 624});
    CHECK(occupied(overlapping) == sizes{600, 424});
    CHECK(overlapping[1].tied_to.empty());
    CHECK(occupied(counted({view(0, 0, 512), view(1, 512, 1024)}, {512, 512})) == sizes{512, 512});
}

TEST_CASE("storage: columns of one matrix count apart, the same columns once") {
    // A matrix of 16 rows of 64 bytes: its left and right halves.
    const std::vector<std::uint64_t> half{16, 8, 16, 1};
    const auto halves = counted({view(0, 0, 992, half), view(1, 32, 1024, half)}, {512, 512});
    CHECK(occupied(halves) == sizes{512, 512});
    const auto same = counted({view(0, 0, 992, half), view(1, 0, 992, half)}, {512, 512});
    CHECK(occupied(same) == sizes{512, 0});
    CHECK(same[1].tied_to == "t0");
    // Beside the whole matrix they take nothing.
    const auto beside = counted({view(0, 0, 1024), view(1, 0, 992, half), view(2, 32, 1024, half)},
                                {1024, 512, 512});
    CHECK(occupied(beside) == sizes{1024, 0, 0});
    // An expanded view has more values than bytes.
    CHECK(occupied(counted({view(0, 0, 64, {16, 16, 0, 1})}, {1024})) == sizes{64});
}

TEST_CASE("storage: a compressed one counts what it takes in the file") {
    auto packed = view(0, 0, 512), rest = view(1, 512, 1024);
    packed.occupied = rest.occupied = 100;
    CHECK(occupied(counted({packed, rest}, {512, 512})) == sizes{50, 50});
}

TEST_CASE("no file's tensors occupy more than the file") {
    std::size_t files = 0;
    for (const auto& each : std::filesystem::directory_iterator(fixture(""))) {
        std::unique_ptr<io::reader> file;
        try {
            file = io::open_model(each.path().string());
        } catch (const base::error&) {
            continue;
        }
        CAPTURE(each.path().filename());
        std::uint64_t held = 0, size = 0;
        for (const io::tensor_info& t : file->tensors()) held += t.occupied_bytes();
        for (const auto& [path, bytes] : file->files()) size += bytes;
        CHECK(held <= size);
        ++files;
    }
    CHECK(files > 20);
}
