// SPDX-License-Identifier: Apache-2.0
// Fortran order to C order for shapes that need many boxes.
#include "libmx/io/strided.hpp"

#include <cstring>
#include <numeric>

#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;

namespace {

// Element p of the stored order is the number p, so nothing is stored in memory.
class counting final : public io::byte_source {
  public:
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        REQUIRE(offset % 4 == 0);
        for (std::size_t i = 0; i < out.size(); i += 4) {
            const auto value = static_cast<std::uint32_t>((offset + i) / 4);
            std::memcpy(out.data() + i, &value, 4);
        }
    }
};

// A box of an array whose first axis runs fastest.
tensor::shape transposition_box(const tensor::shape& shape, std::uint64_t budget) {
    std::vector<std::size_t> reading(shape.size());
    std::iota(reading.begin(), reading.end(), std::size_t{0});
    return io::rearranging_box(shape, reading, budget);
}

}  // namespace

TEST_CASE("boxes keep to their budget and move on", "[fortran]") {
    for (const tensor::shape& shape : {tensor::shape{5},
                                       {1},
                                       {3, 5},
                                       {100000, 2},
                                       {2, 100000},
                                       {4096, 4096},
                                       {1, 9000, 1, 9000},
                                       {3, 3, 512, 512},
                                       {64, 64, 64, 64},
                                       {2, 2, 2, 2, 2, 2, 100000}}) {
        for (const std::uint64_t budget : {1u, 2u, 7u, 1000u, 65536u}) {
            const tensor::shape box = transposition_box(shape, budget);
            REQUIRE(box.size() == shape.size());
            std::uint64_t product = 1;
            for (std::size_t k = 0; k < box.size(); ++k) {
                CHECK(box[k] >= 1);
                CHECK(box[k] <= shape[k]);
                product *= box[k];
            }
            CHECK(product <= budget);
        }
    }
    CHECK(transposition_box({1000, 1000}, 10000) == tensor::shape{100, 100});
    CHECK(transposition_box({4, 1000000}, 10000) == tensor::shape{4, 2500});
    CHECK(transposition_box({1000000, 4}, 10000) == tensor::shape{2500, 4});
}

TEST_CASE("large arrays are reordered in boxes", "[fortran]") {
    // Each takes several boxes of 16 MiB, and a spool on disk.
    for (const tensor::shape& shape :
         {tensor::shape{2500, 2501}, {3, 1200, 1301}, {1501, 1400, 3}, {7, 11, 1000, 61}}) {
        const auto source = io::from_fortran_order(std::make_shared<counting>(), shape, 4);
        const std::uint64_t count = *tensor::element_count(shape);
        std::vector<std::uint32_t> row(static_cast<std::size_t>(shape.back()));
        std::uint64_t wrong = 0;
        for (std::uint64_t first = 0; first < count; first += row.size()) {
            source->read(first * 4, std::as_writable_bytes(std::span(row)));
            for (std::size_t i = 0; i < row.size(); ++i) {
                std::uint64_t rest = first + i;
                std::uint64_t stride = count;
                std::uint64_t place = 0;
                for (std::size_t k = shape.size(); k-- > 0;) {
                    stride /= shape[k];
                    place += rest % shape[k] * stride;
                    rest /= shape[k];
                }
                wrong += row[i] != place;
            }
        }
        CHECK(wrong == 0);
    }
}
