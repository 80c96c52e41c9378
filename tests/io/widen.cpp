// SPDX-License-Identifier: Apache-2.0
// Stored values to float32, against a second, slower way to compute them.
#include "libmx/io/widen.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();
const float quiet_nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> widened(dtype type, const std::string& bytes, std::size_t count,
                           std::uint64_t inexact = 0, unsigned first_bit = 0) {
    std::vector<float> out(count);
    CHECK(io::widen(type, bytes_of(bytes), first_bit, out) == inexact);
    return out;
}

// A floating-point code by definition: sign, biased exponent, fraction. `finite`: how many codes
// with the largest exponent are numbers.
float by_the_book(unsigned code, int e, int m, int bias) {
    const double sign = (code >> (e + m) & 1u) != 0 ? -1.0 : 1.0;
    const int exponent = static_cast<int>(code >> m & ((1u << e) - 1u));
    const double fraction = static_cast<double>(code & ((1u << m) - 1u)) / (1 << m);
    const double value =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return static_cast<float>(sign * value);
}

bool same(float a, float b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
}

std::string all_bytes() {
    std::string text;
    for (int i = 0; i < 256; ++i) text += static_cast<char>(i);
    return text;
}

template <class T>
std::string raw(const std::vector<T>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

void check_codes(dtype type, float (*expected)(unsigned)) {
    INFO(tensor::row_of(type).name);
    const std::vector<float> out = widened(type, all_bytes(), 256);
    for (unsigned code = 0; code < 256; ++code) {
        INFO(code << " " << out[code] << " " << expected(code));
        CHECK(same(out[code], expected(code)));
    }
}

}  // namespace

TEST_CASE("8-bit codes, all of them", "[widen]") {
    check_codes(dtype::f8_e4m3, [](unsigned c) {
        return (c & 0x7f) == 0x7f ? quiet_nan : by_the_book(c, 4, 3, 7);
    });
    check_codes(dtype::f8_e5m2, [](unsigned c) {
        if ((c & 0x7f) > 0x7c) return quiet_nan;
        if ((c & 0x7f) == 0x7c) return c > 0x7f ? -infinite : infinite;
        return by_the_book(c, 5, 2, 15);
    });
    check_codes(dtype::f8_e4m3fnuz,
                [](unsigned c) { return c == 0x80 ? quiet_nan : by_the_book(c, 4, 3, 8); });
    check_codes(dtype::f8_e5m2fnuz,
                [](unsigned c) { return c == 0x80 ? quiet_nan : by_the_book(c, 5, 2, 16); });
    check_codes(dtype::f8_e8m0, [](unsigned c) {
        return c == 255 ? quiet_nan : std::ldexp(1.0f, static_cast<int>(c) - 127);
    });
    check_codes(dtype::u8, [](unsigned c) { return static_cast<float>(c); });
    check_codes(dtype::i8, [](unsigned c) {
        return static_cast<float>(static_cast<int>(c) - (c > 127 ? 256 : 0));
    });
}

TEST_CASE("packed codes from any first element", "[widen]") {
    // 4 bits: low nibble first. 6 bits: least significant first, four in three bytes.
    struct packed {
        dtype type;
        unsigned bits;
        int e, m, bias;
    };
    for (const packed p : {packed{dtype::f4, 4, 2, 1, 1},
                           {dtype::f6_e2m3, 6, 2, 3, 1},
                           {dtype::f6_e3m2, 6, 3, 2, 3}}) {
        std::string bytes;
        std::vector<unsigned> codes;
        unsigned long long stream = 0;
        unsigned held = 0;
        for (unsigned i = 0; i < 67; ++i) {  // an odd number: the last byte is padded
            codes.push_back((i * 29 + i / 7) & ((1u << p.bits) - 1u));
            stream |= static_cast<unsigned long long>(codes.back()) << held;
            for (held += p.bits; held >= 8; held -= 8, stream >>= 8) {
                bytes += static_cast<char>(stream & 0xff);
            }
        }
        if (held > 0) bytes += static_cast<char>(stream & 0xff);
        CHECK(bytes.size() == *tensor::byte_count(p.type, codes.size()));
        for (std::size_t first = 0; first < codes.size(); ++first) {
            const std::size_t bit = first * p.bits;
            const std::vector<float> out =
                widened(p.type, bytes.substr(bit / 8), codes.size() - first, 0,
                        static_cast<unsigned>(bit % 8));
            for (std::size_t i = first; i < codes.size(); ++i) {
                if (!same(out[i - first], by_the_book(codes[i], p.e, p.m, p.bias))) {
                    FAIL(tensor::row_of(p.type).name << " " << first << " " << i);
                }
            }
        }
    }
}

TEST_CASE("16-bit types, all of their values", "[widen]") {
    std::vector<std::uint16_t> all;
    for (unsigned i = 0; i < 65536; ++i) all.push_back(static_cast<std::uint16_t>(i));
    const std::vector<float> half = widened(dtype::f16, raw(all), all.size());
    const std::vector<float> brain = widened(dtype::bf16, raw(all), all.size());
    const std::vector<float> natural = widened(dtype::u16, raw(all), all.size());
    const std::vector<float> whole = widened(dtype::i16, raw(all), all.size());
    int wrong = 0;
    for (unsigned c = 0; c < 65536; ++c) {
        const float special_half = (c & 0x3ff) != 0 ? quiet_nan : c > 0x7fff ? -infinite : infinite;
        const float special_brain = (c & 0x7f) != 0 ? quiet_nan : c > 0x7fff ? -infinite : infinite;
        wrong += !same(half[c], (c & 0x7c00) == 0x7c00 ? special_half : by_the_book(c, 5, 10, 15));
        wrong +=
            !same(brain[c], (c & 0x7f80) == 0x7f80 ? special_brain : by_the_book(c, 8, 7, 127));
        wrong += natural[c] != static_cast<float>(c);
        wrong += whole[c] != static_cast<float>(static_cast<int>(c) - (c > 0x7fff ? 65536 : 0));
    }
    CHECK(wrong == 0);
}

TEST_CASE("f32 keeps its bits", "[widen]") {
    const std::vector<std::uint32_t> bits{0, 0x80000000u, 1, 0x7f800000u, 0x7fa00001u, 0x3f800000u};
    std::vector<float> out(bits.size());
    CHECK(io::widen(dtype::f32, bytes_of(raw(bits)), 0, out) == 0);
    CHECK(std::memcmp(out.data(), bits.data(), 4 * bits.size()) == 0);
}

TEST_CASE("f64 is rounded once, ties to even, and counted", "[widen]") {
    const double tie = 1 + 0x1p-24;  // halfway between 1 and the next float
    const double above = std::nextafter(tie, 2);
    const double odd_tie = 1 + 0x3p-24;  // its lower neighbour is odd
    const std::vector<double> in{0.0,
                                 -0.0,
                                 1.5,
                                 tie,
                                 above,
                                 odd_tie,
                                 1e300,
                                 -1e300,
                                 std::numeric_limits<double>::infinity(),
                                 0x1.fffffep127,
                                 0x1.ffffffp127,
                                 std::nextafter(0x1.ffffffp127, 0),
                                 0x1p-149,
                                 0x1p-150,
                                 std::nextafter(0x1p-150, 1),
                                 0x1.8p-149,
                                 1e-320,
                                 std::numeric_limits<double>::quiet_NaN()};
    const std::vector<float> expected{0.0f,         -0.0f,
                                      1.5f,         1.0f,
                                      1 + 0x1p-23f, 1 + 0x1p-22f,
                                      infinite,     -infinite,
                                      infinite,     0x1.fffffep127f,
                                      infinite,     0x1.fffffep127f,
                                      0x1p-149f,    0.0f,
                                      0x1p-149f,    0x1p-148f,
                                      0.0f,         quiet_nan};
    const std::vector<float> out = widened(dtype::f64, raw(in), in.size(), 11);
    for (std::size_t i = 0; i < in.size(); ++i) {
        INFO(in[i] << " gave " << out[i]);
        CHECK(same(out[i], expected[i]));
    }
}

TEST_CASE("wide integers are rounded once, ties to even, and counted", "[widen]") {
    const std::vector<std::int32_t> i32{0,
                                        -1,
                                        16777216,
                                        16777217,
                                        16777219,
                                        -16777217,
                                        std::numeric_limits<std::int32_t>::max(),
                                        std::numeric_limits<std::int32_t>::min()};
    CHECK(widened(dtype::i32, raw(i32), i32.size(), 4) ==
          std::vector<float>{0, -1, 16777216, 16777216, 16777220, -16777216, 0x1p31f, -0x1p31f});
    const std::vector<std::uint32_t> u32{16777217, 0xffffffffu, 0xffffff00u, 0x80000000u};
    CHECK(widened(dtype::u32, raw(u32), u32.size(), 2) ==
          std::vector<float>{16777216, 0x1p32f, 4294967040.0f, 0x1p31f});
    // Just above a tie in the last of 64 bits: rounding twice (by way of double) would go down.
    const std::int64_t sticky = (std::int64_t{1} << 62) + (std::int64_t{1} << 38) + 1;
    const std::vector<std::int64_t> i64{sticky,
                                        -sticky,
                                        sticky - 1,
                                        std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::min(),
                                        5};
    CHECK(widened(dtype::i64, raw(i64), i64.size(), 4) ==
          std::vector<float>{0x1.000002p62f, -0x1.000002p62f, 0x1p62f, 0x1p63f, -0x1p63f, 5});
    const std::uint64_t high = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 39) + 1;
    const std::vector<std::uint64_t> u64{high, high - 1, ~std::uint64_t{0}, 1ull << 63};
    CHECK(widened(dtype::u64, raw(u64), u64.size(), 3) ==
          std::vector<float>{0x1.000002p63f, 0x1p63f, 0x1p64f, 0x1p63f});
}

TEST_CASE("reading and widening in pieces", "[widen]") {
    class memory final : public io::byte_source {
      public:
        explicit memory(std::string bytes) : bytes_(std::move(bytes)) {}
        void read(std::uint64_t offset, std::span<std::byte> out) const override {
            REQUIRE(offset + out.size() <= bytes_.size());
            std::memcpy(out.data(), bytes_.data() + offset, out.size());
        }

      private:
        std::string bytes_;
    };
    std::string noise(3 << 20, '\0');
    unsigned seed = 1;
    for (char& c : noise) c = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
    const memory source(noise);
    std::vector<std::byte> scratch;
    for (const dtype type :
         {dtype::f4, dtype::f6_e2m3, dtype::f8_e4m3, dtype::f16, dtype::f32, dtype::f64}) {
        const std::size_t count =
            noise.size() * 8 / static_cast<std::size_t>(tensor::row_of(type).bits);
        std::vector<float> whole(count);
        const std::uint64_t inexact = io::widen(type, bytes_of(noise), 0, whole);
        std::vector<float> out(count - 5);
        std::vector<float> head(5);
        const std::uint64_t counted = io::read_f32(source, type, 5, out, scratch) +
                                      io::read_f32(source, type, 0, head, scratch);
        CHECK(counted == inexact);
        int wrong = 0;
        for (std::size_t i = 5; i < count; ++i) wrong += !same(out[i - 5], whole[i]);
        CHECK(wrong == 0);
        CHECK(scratch.size() <= (1 << 20));
    }
}
