// SPDX-License-Identifier: Apache-2.0
// safetensors files, sound and otherwise.
#include <unistd.h>

#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

std::string safetensors(const std::string& header, const std::string& data) {
    return little(header.size(), 8) + header + data;
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":[" + shape +
           "],\"data_offsets\":[" + offsets + "]}";
}

std::string safetensors_error(const std::string& bytes) {
    const scratch_dir dir;
    return open_error(dir.file("x.safetensors", bytes));
}

std::string safetensors_error(const std::string& header, const std::string& data) {
    return safetensors_error(safetensors(header, data));
}

}  // namespace

TEST_CASE("safetensors of the reference implementation", "[safetensors]") {
    const auto file = io::open_model(fixture("safetensors.safetensors"));
    for (const named_type& each : fixture_types) {
        const std::string name = each.name;
        if (name.find("big") == 0 || name[0] == 'c') continue;
        check_fixture(*file, name, each.type, {5, 7});
    }
    check_fixture(*file, "scalar", dtype::f32, {});
    check_fixture(*file, "empty", dtype::f32, {3, 0, 2});
    CHECK(file->metadata().at("made") == "by safetensors");
    REQUIRE(file->files().size() == 1);
    CHECK(file->files()[0].second == slurp(fixture("safetensors.safetensors")).size());
}

TEST_CASE("safetensors: unaligned, null metadata, blanks, unknown fields", "[safetensors]") {
    const scratch_dir dir;
    const std::string header = "{\"__metadata__\":null," + entry("b", "U8", "1", "0,1") + ", " +
                               "\"a\" : {\"shape\":[2],\"more\":[{\"x\":[1]}],\"data_offsets\":"
                               "[1,9],\"dtype\":\"F32\"}}   ";
    REQUIRE((8 + header.size()) % 4 != 0);
    const float numbers[] = {1.5f, -2.25f};
    const auto file = io::open_model(dir.file(
        "x", safetensors(header, "\x05" + std::string(reinterpret_cast<const char*>(numbers), 8))));
    REQUIRE(file->tensors().size() == 2);
    CHECK(values(*file, "b") == std::vector<float>{5});
    CHECK(values(*file, "a") == std::vector<float>{1.5f, -2.25f});
    CHECK(file->metadata().empty());
    CHECK(file->tensors()[0].name == "b");
}

TEST_CASE("safetensors: no tensors at all", "[safetensors]") {
    const scratch_dir dir;
    CHECK(io::open_model(dir.file("x", safetensors("{}", "")))->tensors().empty());
}

TEST_CASE("safetensors: sources read any range and outlive their reader", "[safetensors]") {
    const scratch_dir dir;
    auto file = io::open_model(
        dir.file("x", safetensors("{" + entry("t", "U8", "10", "0,10") + "}", "0123456789")));
    const auto source = file->open(0);
    file.reset();
    std::string part(4, ' ');
    source->read(3, std::as_writable_bytes(std::span(part)));
    CHECK(part == "3456");
    has(error_of(base::error_kind::input,
                 [&] { source->read(7, std::as_writable_bytes(std::span(part))); }),
        "read past the end");
}

TEST_CASE("safetensors: tensors of more than 2^31 elements", "[safetensors]") {
    const scratch_dir dir;
    const std::string count = "3000000000";
    const std::string start = safetensors("{" + entry("t", "U8", count, "0," + count) + "}", "");
    const std::string path = dir.file("x", start);
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(start.size() + 3000000000u)) == 0);
    const auto file = io::open_model(path);
    CHECK(file->tensors()[0].elements == 3000000000u);
    std::vector<std::byte> scratch;
    std::vector<float> out(3, 1.0f);
    io::read_f32(*file->open(0), dtype::u8, 2999999997u, out, scratch);
    CHECK(out == std::vector<float>{0, 0, 0});
}

TEST_CASE("safetensors: lies about lengths", "[safetensors][hostile]") {
    has(safetensors_error("\x01\x02\x03\x04\x05\x06\x07"), "7 bytes are too short");
    has(safetensors_error(little(100'000'001, 8) + "{}"),
        "100000001 bytes, more than the 100000000");
    has(safetensors_error(little(~std::uint64_t{0}, 8) + "{}"),
        "18446744073709551615 bytes, more than");
    has(safetensors_error(little(3, 8) + "{}"),
        "the header says it has 3 bytes, the file has 2 more");
    has(safetensors_error(little(0, 8)), "at byte 8: the header does not begin with '{'");
    has(safetensors_error(little(3, 8) + " {}"), "at byte 8: the header does not begin with '{'");
}

TEST_CASE("safetensors: headers that are not what they should be", "[safetensors][hostile]") {
    has(safetensors_error("{\"a\":", ""), "the header is not valid JSON");
    has(safetensors_error("{} x", ""), "at byte 12: the header is not valid JSON");
    has(safetensors_error("{\"\xff\":1}", ""), "the header is not valid JSON");
    has(safetensors_error("{\"a\":3}", ""),
        "tensor 'a': at byte 15: the header's entry is not an object");
    has(safetensors_error("{\"a\":[]}", ""), "the header's entry is not an object");
    has(safetensors_error("{\"a\":{}}", ""),
        "tensor 'a': at byte 15: the header's entry has no dtype");
    has(safetensors_error("{\"a\":{\"dtype\":\"F32\"}}", ""), "has no shape");
    has(safetensors_error("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", ""), "has no data_offsets");
    has(safetensors_error("{\"a\":{\"dtype\":3}}", ""), "dtype is not a string");
    has(safetensors_error("{\"a\":{\"dtype\":[\"F32\"]}}", ""), "dtype is not a string");
    has(safetensors_error("{\"a\":{\"shape\":3}}", ""), "shape is not an array");
    has(safetensors_error("{\"a\":{\"shape\":{}}}", ""), "shape is not an array");
    has(safetensors_error("{\"a\":{\"shape\":[[]]}}", ""),
        "shape has an element that is not a number");
    has(safetensors_error("{\"a\":{\"shape\":[-1]}}", ""),
        "shape holds '-1', which is not a natural");
    has(safetensors_error("{\"a\":{\"shape\":[1.5]}}", ""),
        "shape holds '1.5', which is not a natural");
    has(safetensors_error("{\"a\":{\"shape\":[18446744073709551616]}}", ""),
        "shape holds '18446744073709551616', which is not a natural number below 2^64");
    has(safetensors_error("{\"a\":{\"data_offsets\":[1]}}", ""), "data_offsets is not a pair");
    has(safetensors_error("{\"a\":{\"data_offsets\":[1,2,3]}}", ""), "data_offsets is not a pair");
    has(safetensors_error("{\"__metadata__\":3}", ""), "the header's entry is not an object");
    has(safetensors_error("{\"__metadata__\":{\"a\":3}}", ""),
        "metadata value of 'a' is not a string");
    has(safetensors_error("{\"__metadata__\":{\"a\":[]}}", ""),
        "metadata value of 'a' is not a string");
}

TEST_CASE("safetensors: duplicate keys and deep nesting", "[safetensors][hostile]") {
    const std::string a = entry("a", "U8", "0", "0,0");
    has(safetensors_error("{" + a + "," + a + "}", ""), "the header has the key 'a' twice");
    has(safetensors_error("{\"a\":{\"shape\":[0],\"shape\":[1]}}", ""), "the key 'shape' twice");
    has(safetensors_error("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", ""), "the key 'k' twice");
    has(safetensors_error("{\"a\":{\"x\":" + std::string(100000, '[') + "}}", ""),
        "nested more than 16 deep");
    std::string axes = "1";
    for (int i = 0; i < 64; ++i) axes += ",1";
    has(safetensors_error("{" + entry("a", "U8", axes, "0,1") + "}", "x"), "more than 64 axes");
    std::string many = "{";
    for (int i = 0; i <= 1 << 18; ++i) many += entry(std::to_string(i), "U8", "0", "0,0") + ",";
    has(safetensors_error(many + "}", ""), "more than 262144 tensors");
}

TEST_CASE("safetensors: unknown dtypes are listed, and the others are read", "[safetensors]") {
    const scratch_dir dir;
    for (const char* type : {"", "F7", "OTHER", "f32", "F8_E4M3FN", "\\u001b[31m"}) {
        INFO(type);
        const std::string header = "{" + entry("a", "U8", "3", "0,3") + "," +
                                   entry("b", type, "2", "3,4") + "," +
                                   entry("c", "U8", "1", "4,5") + "}";
        const auto file =
            io::open_model(dir.file("m.safetensors", little(header.size(), 8) + header + "abcde"));
        REQUIRE(file->tensors().size() == 3);
        CHECK(content(*file, 0) == "abc");
        CHECK(content(*file, 2) == "e");
        const io::tensor_info& b = file->tensors()[1];
        CHECK(static_cast<int>(b.type) == static_cast<int>(dtype::other));
        has(b.note, "unknown dtype '");
        CHECK(b.note.find('\x1b') == std::string::npos);
        CHECK(b.bytes == 1);
        CHECK(b.shape == tensor::shape{2});
        has(error_of(base::error_kind::input, [&] { file->open(1); }), "unknown dtype");
    }
    // As torchtitan wrote it for tied heads: no axes, no bytes.
    const std::string empty =
        "{" + entry("a", "U8", "1", "0,1") + "," + entry("b", "", "", "1,1") + "}";
    const auto file =
        io::open_model(dir.file("m.safetensors", little(empty.size(), 8) + empty + "x"));
    CHECK(file->tensors().size() == 2);
}

TEST_CASE("safetensors: unknown dtypes need a valid range, too", "[safetensors][hostile]") {
    has(safetensors_error("{" + entry("a", "F7", "1", "0,2") + "}", "x"), "go beyond the file");
    has(safetensors_error("{" + entry("a", "F7", "1", "1,0") + "}", "x"), "end before they begin");
    has(safetensors_error(
            "{" + entry("a", "F7", "1", "0,1") + "," + entry("b", "U8", "1", "0,1") + "}", "x"),
        "overlaps");
    has(safetensors_error("{" + entry("a", "F7", "4294967296,4294967296", "0,1") + "}", "x"),
        "too large");
}

TEST_CASE("safetensors: offsets that do not fit", "[safetensors][hostile]") {
    has(safetensors_error("{" + entry("a", "U8", "4", "0,4") + "}", "123"),
        "data_offsets (0, 4) go beyond the file, which has 3 bytes of data");
    has(safetensors_error(
            "{" + entry("a", "U8", "4", "18446744073709551612,18446744073709551615") + "}", "123"),
        "go beyond the file");
    has(safetensors_error("{" + entry("a", "U8", "1", "2,1") + "}", "123"),
        "data_offsets end before they begin (2, 1)");
    has(safetensors_error("{" + entry("a", "F32", "2", "0,4") + "}", "1234"),
        "F32 of shape 2 takes 8 bytes, data_offsets say 4");
    has(safetensors_error("{" + entry("a", "F32", "4294967296,4294967296,4294967296", "0,0") + "}",
                          ""),
        "shape 4294967296x4294967296x4294967296 is too large");
    has(safetensors_error("{" + entry("a", "F64", "2305843009213693952", "0,0") + "}", ""),
        "is too large");
}

TEST_CASE("safetensors: the tensors must cover the data", "[safetensors][hostile]") {
    has(safetensors_error(
            "{" + entry("a", "U8", "3", "0,3") + "," + entry("b", "U8", "2", "2,4") + "}", "1234"),
        "overlaps the data of 'a'");
    has(safetensors_error(
            "{" + entry("a", "U8", "1", "0,1") + "," + entry("b", "U8", "1", "3,4") + "}", "1234"),
        "tensor 'b'");
    has(safetensors_error(
            "{" + entry("a", "U8", "1", "0,1") + "," + entry("b", "U8", "1", "3,4") + "}", "1234"),
        "2 bytes before it belong to no tensor");
    const std::string header = "{" + entry("a", "U8", "1", "0,1") + "}";
    has(safetensors_error(header, "12"), "at byte " + std::to_string(8 + header.size() + 1) +
                                             ": 1 bytes after the last tensor belong to no tensor");
    has(safetensors_error("{}", "1"), "1 bytes after the last tensor");
}

TEST_CASE("safetensors: names that would drive a terminal are escaped", "[safetensors][hostile]") {
    const std::string message =
        safetensors_error("{" + entry("\\u001b[2J", "F7", "1", "0,2") + "}", "x");
    CHECK(message.find('\x1b') == std::string::npos);
    has(message, "\\x1b[2J");
}

TEST_CASE("a file that shrinks while being read", "[safetensors][hostile]") {
    const scratch_dir dir;
    const std::string header = "{" + entry("t", "U8", "8", "0,8") + "}";
    const std::string path = dir.file("x", safetensors(header, "01234567"));
    const auto file = io::open_model(path);
    const auto source = file->open(0);
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(8 + header.size() + 5)) == 0);
    std::string out(8, ' ');
    const std::string message = error_of(
        base::error_kind::input, [&] { source->read(0, std::as_writable_bytes(std::span(out))); });
    has(message, "tensor 't': at byte " + std::to_string(8 + header.size() + 5));
    has(message, "the file ends here, 3 bytes early");
}

TEST_CASE("safetensors: --as reads unsigned integers as something of their width",
          "[safetensors]") {
    const scratch_dir dir;
    io::open_options as;
    as.as = "bf16";
    const auto file =
        io::open_model(dir.file("x", safetensors("{" + entry("a", "U16", "1", "0,2") + "," +
                                                     entry("b", "I16", "1", "2,4") + "," +
                                                     entry("c", "U8", "1", "4,5") + "}",
                                                 "\x80\x3f\x80\x3f!")),
                       as);
    CHECK(file->tensors()[0].type == dtype::bf16);
    CHECK(values(*file, "a") == std::vector<float>{1.0f});
    CHECK(file->tensors()[1].type == dtype::i16);
    CHECK(file->tensors()[2].type == dtype::u8);
    as.as = "bf17";
    has(error_of(base::error_kind::usage, [&] { io::open_model(dir / "x", as); }),
        "as: unknown dtype 'bf17'");
}
