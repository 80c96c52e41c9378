// SPDX-License-Identifier: Apache-2.0
// .npy arrays, sound and otherwise.
#include <array>

#include "libmx/io/npy_header.hpp"
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
    return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
           little(dictionary.size(), version == 1 ? 2 : 4) + dictionary + data;
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& order = "False") {
    return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': (" + shape + "), }";
}

std::unique_ptr<io::reader> open(const std::string& bytes, const std::string& as = {}) {
    const scratch_dir dir;  // the open file outlives its name
    io::open_options options;
    options.as = as;
    return io::open_model(dir.file("x.npy", bytes), options);
}

std::string npy_error(const std::string& bytes) {
    const scratch_dir dir;
    return open_error(dir.file("x.npy", bytes));
}

}  // namespace

TEST_CASE("npy versions 2 and 3", "[npy]") {
    check_fixture(*io::open_model(fixture("version2.npy")), "version2", dtype::f32, {5, 7});
    check_fixture(*io::open_model(fixture("version3.npy")), "version3", dtype::f32, {5, 7});
}

TEST_CASE("npy as ml_dtypes writes it", "[npy]") {
    check_fixture(*io::open_model(fixture("bfloat16.npy")), "bfloat16", dtype::bf16, {5, 7});
    io::open_options options;
    const auto e5m2 = io::open_model(fixture("float8_e5m2.npy"));
    const auto bare = io::open_model(fixture("float8_e4m3fn.npy"));
    CHECK(bare->tensors()[0].type == dtype::other);
    has(bare->tensors()[0].note, "--as");
    has(error_of(base::error_kind::input, [&] { bare->open(0); }), "raw bytes");
    options.as = "f8_e4m3";
    const auto e4m3 = io::open_model(fixture("float8_e4m3fn.npy"), options);
    CHECK(e5m2->tensors()[0].type == dtype::f8_e5m2);
    CHECK(e4m3->tensors()[0].type == dtype::f8_e4m3);
    for (std::size_t i = 0; i < 16; ++i) {  // both formats represent integers up to 8 exactly
        CHECK(values(*e5m2, "float8_e5m2")[i] == static_cast<float>(i) - 7.0f);
        CHECK(values(*e4m3, "float8_e4m3fn")[i] == static_cast<float>(i) - 7.0f);
    }
}

TEST_CASE("npy: --as explains bare and unsigned elements", "[npy]") {
    const std::string one = "\x80\x3f";
    CHECK(open(npy(dictionary("'<V2'", "1,"), one))->tensors()[0].type == dtype::bf16);
    CHECK(open(npy(dictionary("'|V2'", "1,"), one))->tensors()[0].type == dtype::bf16);
    CHECK(open(npy(dictionary("'|V2'", "1,"), one), "f16")->tensors()[0].type == dtype::f16);
    CHECK(open(npy(dictionary("'>V2'", "1,"), one))->tensors()[0].type == dtype::other);
    CHECK(open(npy(dictionary("'<u2'", "1,"), one))->tensors()[0].type == dtype::u16);
    CHECK(values(*open(npy(dictionary("'<u2'", "1,"), one), "bf16"), "x")[0] == 1.0f);
    CHECK(values(*open(npy(dictionary("'>u2'", "1,"), "\x3f\x80"), "bf16"), "x")[0] == 1.0f);
    CHECK(open(npy(dictionary("'<i2'", "1,"), one), "bf16")->tensors()[0].type == dtype::i16);
    CHECK(open(npy(dictionary("'|V1'", "1,"), "x"), "bf16")->tensors()[0].type == dtype::other);
}

TEST_CASE("npy: data that are not numbers are described and never run", "[npy]") {
    const auto note = [](const std::string& descr) {
        const auto file = open(npy(dictionary(descr, "1,"), "whatever"));
        CHECK(file->tensors()[0].type == dtype::other);
        CHECK(file->tensors()[0].bytes == 8);
        return file->tensors()[0].note;
    };
    has(note("'|O'"), "Python objects");
    has(note("'|S8'"), "text");
    has(note("'<U2'"), "text");
    has(note("'<M8[s]'"), "type '<M8[s]'");
    has(note("'<f16'"), "type '<f16'");
    has(note("[('a', '<f4'), ('b\\'', '<i4', (2, 3))]"), "records");
    has(note("[(('title', 'a'), [('x', '|u1')])]"), "records");
}

TEST_CASE("npy: spellings of the header that occur", "[npy]") {
    CHECK(open(npy("{'descr':'<f4','fortran_order':False,'shape':(2L,)}", "12345678"))
              ->tensors()[0]
              .shape == tensor::shape{2});
    CHECK(open(npy("{\"shape\": (1, 2, ), \"descr\": \"<f4\", \"fortran_order\": True}\n",
                   "12345678"))
              ->tensors()[0]
              .shape == tensor::shape{1, 2});
    CHECK(open(npy(dictionary("'f4'", ""), "1234", 3))->tensors()[0].shape.empty());
}

TEST_CASE("npy: malformed headers", "[npy][hostile]") {
    has(npy_error("\x93NUMPY\x01"), "7 bytes are too short");
    has(npy_error(npy("{}", "", 4)), "at byte 6: version 4.0 is unknown");
    has(npy_error(std::string("\x93NUMPY\x01\0\xff\xff{}", 12)),
        "at byte 8: the header says it has 65535");
    has(npy_error(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14)), "it has 4294967295 bytes");
    has(npy_error(npy(std::string((1 << 20) + 1, ' '), "", 2)),
        "a header of 1048577 bytes is too long");
    has(npy_error(npy("", "")), "'{' is missing");
    has(npy_error(npy("{}", "")), "descr, fortran_order or shape is missing");
    has(npy_error(npy("{'a': 1}", "")), "unknown key 'a'");
    has(npy_error(npy("{'descr': '<f4', 'descr': '<f4'}", "")), "key 'descr' comes twice");
    has(npy_error(npy("{'descr' '<f4'}", "")), "':' is missing");
    has(npy_error(npy("{'descr': '<f4' 'shape': ()}", "")), "',' or '}' is missing");
    has(npy_error(npy("{'descr': '<f4", "")), "a string does not end");
    has(npy_error(npy("{descr: 1}", "")), "a key in quotes is missing");
    has(npy_error(npy("{'descr': __import__('os')}", "")),
        "at byte 20: malformed header: the value of 'descr'");
    has(npy_error(npy(dictionary("'<f4'", "1") + "x", "1234")), "the value of 'shape'");
    has(npy_error(npy(dictionary("'<f4'", "1,") + "x", "1234")), "something follows");
    has(npy_error(npy(dictionary("'<f4'", "-1,"), "1234")), "the value of 'shape'");
    has(npy_error(npy(dictionary("'<f4'", "1,,"), "1234")), "the value of 'shape'");
    has(npy_error(npy(dictionary("'<f4'", "18446744073709551616,"), "")),
        "does not fit into 64 bits");
    has(npy_error(npy(dictionary("'<f4'", "1,", "1"), "1234")), "the value of 'fortran_order'");
    has(npy_error(npy(dictionary(std::string(20, '['), "1,"), "")), "nested too deep");
    std::string axes;
    for (int i = 0; i < 65; ++i) axes += "1,";
    has(npy_error(npy(dictionary("'<f4'", axes), "1234")), "more than 64 axes");
}

TEST_CASE("npy: data that does not fit its header", "[npy][hostile]") {
    const std::string header = dictionary("'<f4'", "3,");
    has(npy_error(npy(header, "12345678901")), "the array of 12 bytes ends 1 bytes early");
    has(npy_error(npy(header, "1234567890123")), "1 bytes follow the array");
    has(npy_error(npy(dictionary("'<f4'", "4294967296, 4294967296, 4294967296"), "")),
        "is too large");
    has(npy_error(npy(dictionary("'<f8'", "4611686018427387904,"), "")), "is too large");
    has(npy_error(npy(dictionary("'<f4'", "1000000000000,"), "")),
        "ends 4000000000000 bytes early");
}

TEST_CASE("npy: Fortran order and byte order in any range", "[npy]") {
    // 2x3x2, element = its C index; stored with the first axis fastest, big-endian.
    std::string data;
    std::array<std::uint16_t, 12> c{};
    for (std::size_t k = 0; k < 2; ++k) {
        for (std::size_t j = 0; j < 3; ++j) {
            for (std::size_t i = 0; i < 2; ++i) {
                const std::size_t index = (i * 3 + j) * 2 + k;
                data += '\x01';
                data += static_cast<char>(index);
                c[index] = static_cast<std::uint16_t>(0x100 + index);
            }
        }
    }
    const auto file = open(npy(dictionary("'>u2'", "2, 3, 2", "True"), data));
    const auto source = file->open(0);
    std::string all;
    for (const std::uint16_t value : c) all += little(value, 2);
    for (std::size_t begin = 0; begin < all.size(); ++begin) {
        for (std::size_t end = begin; end <= all.size(); ++end) {
            std::string part(end - begin, ' ');
            source->read(begin, std::as_writable_bytes(std::span(part)));
            if (part != all.substr(begin, end - begin)) FAIL(begin << " " << end);
        }
    }
}

TEST_CASE("the header's parser stops at every cut", "[npy][hostile]") {
    const std::string sound =
        "{'descr': [('a', '<f4', (2,))], 'fortran_order': True, 'shape': (3, 4)}";
    std::string problem;
    std::size_t at = 0;
    REQUIRE(io::parse_npy_dictionary(sound, problem, at));
    for (std::size_t length = 0; length < sound.size(); ++length) {
        problem.clear();
        CHECK(!io::parse_npy_dictionary(sound.substr(0, length), problem, at));
        CHECK(!problem.empty());
        CHECK(at <= length);
    }
}
