// SPDX-License-Identifier: Apache-2.0
// Views with any strides against indexing element by element.
#include "libmx/io/strided.hpp"

#include <algorithm>
#include <cstring>

#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;

namespace {

// Byte i of the source is i mod 251, so that each element of any width is known.
class pattern final : public io::byte_source {
  public:
    void read(std::uint64_t offset, std::span<std::byte> out) const override {
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] = static_cast<std::byte>((offset + i) % 251);
        }
    }
};

struct strided_view {
    tensor::shape shape;
    std::vector<std::uint64_t> strides;
};

std::string expected(const strided_view& v, std::size_t width) {
    std::string out;
    const std::uint64_t count = *tensor::element_count(v.shape);
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t rest = i;
        std::uint64_t place = 0;
        for (std::size_t k = v.shape.size(); k-- > 0;) {
            place += rest % v.shape[k] * v.strides[k];
            rest /= v.shape[k];
        }
        for (std::size_t b = 0; b < width; ++b) {
            out += static_cast<char>((place * width + b) % 251);
        }
    }
    return out;
}

}  // namespace

TEST_CASE("strided views", "[strided]") {
    for (const strided_view& v :
         std::vector<strided_view>{{{}, {}},
                                   {{1}, {99}},
                                   {{7}, {1}},
                                   {{7}, {3}},
                                   {{7}, {1000}},
                                   {{7}, {0}},
                                   {{0, 3}, {1, 1}},
                                   {{5, 7}, {7, 1}},
                                   {{5, 7}, {1, 5}},
                                   {{50, 70}, {1, 50}},
                                   {{50, 70}, {2, 100}},
                                   {{50, 70}, {140, 2}},
                                   {{50, 70}, {0, 40}},
                                   {{50, 70}, {40, 0}},
                                   {{4, 5, 6}, {0, 0, 0}},
                                   {{30, 20, 40}, {1, 1200, 30}},
                                   {{30, 20, 40}, {40, 1200, 1}},
                                   {{3, 1, 40}, {1, 77, 30}},
                                   {{2, 30, 40, 50}, {60000, 1, 1500, 30}},
                                   {{20, 30}, {1, 17}},  // overlapping
                                   {{40, 30}, {900, 30}},
                                   {{40, 30, 1, 2}, {31, 1300, 5, 50000}}}) {
        for (const std::size_t width : {1u, 2u, 4u, 8u, 16u}) {
            INFO(tensor::to_string(v.shape) << " width " << width);
            const auto source =
                io::from_strided(std::make_shared<pattern>(), v.shape, v.strides, width);
            const std::string wanted = expected(v, width);
            std::string found(wanted.size(), '\0');
            source->read(0, std::as_writable_bytes(std::span(found)));
            CHECK(found == wanted);
            // Any range, cut elements included.
            for (std::size_t at = 1; at < wanted.size(); at = at * 2 + 3) {
                std::string part(std::min<std::size_t>(wanted.size() - at, 333), '\0');
                source->read(at, std::as_writable_bytes(std::span(part)));
                CHECK(part == wanted.substr(at, part.size()));
            }
        }
    }
}
