// SPDX-License-Identifier: Apache-2.0
// GGUF files from llama.cpp's package, and hostile ones.
#include <array>
#include <cmath>
#include <cstring>

#include "libmx/base/bits.hpp"
#include "libmx/io/gguf/gguf_header.hpp"
#include "libmx/io/gguf/gguf_types.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/gguf_bytes.hpp"

using namespace mx;
using namespace mx::test;
using namespace mx::test::gguf;
using tensor::dtype;

namespace {

const std::vector<named_type> gguf_types{
    {"f32", dtype::f32}, {"f16", dtype::f16}, {"f64", dtype::f64}, {"bf16", dtype::bf16},
    {"i8", dtype::i8},   {"i16", dtype::i16}, {"i32", dtype::i32}, {"i64", dtype::i64}};

}  // namespace

TEST_CASE("GGUF of the gguf package, little- and big-endian", "[gguf]") {
    for (const char* name : {"gguf.gguf", "gguf_big.gguf"}) {
        INFO(name);
        const auto file = io::open_model(fixture(name));
        for (const named_type& each : gguf_types) {
            check_fixture(*file, std::string("plain.") + each.name, each.type, {5, 7});
        }
        check_fixture(*file, "four", dtype::f32, {3, 4, 5, 6});
    }
}

TEST_CASE("GGUF: version 2 has the layout of version 3", "[gguf]") {
    const scratch_dir dir;
    std::string bytes = slurp(fixture("gguf.gguf"));
    bytes[4] = '\2';
    check_fixture(*io::open_model(dir.file("v2", bytes)), "four", dtype::f32, {3, 4, 5, 6});
    bytes[4] = '\1';
    has(open_error(dir.file("v1", bytes)),
        "GGUF version 1 is not read, only 2 and 3; convert the model again");
    bytes[4] = '\4';
    has(open_error(dir.file("v4", bytes)),
        "GGUF version 4 is not read, only 2 and 3; a newer mx may read it");
}

TEST_CASE("GGUF: products go along ne0, those of a convolution along ne0 and ne1", "[gguf]") {
    const scratch_dir dir;
    const auto file = io::open_model(
        dir.file("m.gguf", model({},
                                 {tensor_entry("a.conv1d.1.weight", {3, 32, 64}, 0, 0),
                                  tensor_entry("blk.0.ffn_up_exps.weight", {32, 8, 4}, 0, 24576),
                                  tensor_entry("blk.0.attn_q.weight", {32, 8}, 0, 28672)},
                                 29696)));
    const auto axes = [&](const char* name) {
        const io::contraction& k = find(*file, name)->sums_over;
        return std::pair(k.first, k.last);
    };
    CHECK(axes("a.conv1d.1.weight") == std::pair(1, 3));
    CHECK(axes("blk.0.ffn_up_exps.weight") == std::pair(2, 3));
    CHECK(axes("blk.0.attn_q.weight") == std::pair(1, 2));
}

TEST_CASE("GGUF: metadata in words", "[gguf]") {
    const auto metadata = io::open_model(fixture("gguf.gguf"))->metadata();
    const auto value = [&](const char* key) { return metadata.at(key); };
    CHECK(value("general.architecture") == "llama");
    CHECK(value("general.name") == "a fixture");
    CHECK(value("general.count") == "4000000000");
    CHECK(value("general.small") == "-5");
    CHECK(value("general.large") == "9223372036854775809");
    CHECK(value("general.single") == "0.1");
    CHECK(value("general.double") == "-2.5e-300");
    CHECK(value("general.truth") == "true");
    CHECK(value("tokens") == "[a, b, , d\xc3\xa9, ...] (5 STRING)");
    CHECK(value("scores") == "[0.5, -1.5] (2 FLOAT32)");
    CHECK(value("nested") == "[[1, 2] (2 INT32), [3] (1 INT32)] (2 ARRAY)");
}

TEST_CASE("GGUF: arrays of the metadata are kept whole on request", "[gguf]") {
    constexpr std::array<std::string_view, 3> wanted{"tokens", "scores", "missing"};
    const io::gguf_header header =
        io::read_gguf_header(io::input_file::open(fixture("gguf.gguf")), wanted);
    CHECK(header.arrays.size() == 2);
    CHECK(header.arrays.at("tokens").texts ==
          std::vector<std::string>{"a", "b", "", "d\xc3\xa9", "e"});
    CHECK(header.arrays.at("scores").numbers == std::vector<double>{0.5, -1.5});
    CHECK(!header.metadata.contains("tokens"));
    CHECK(header.metadata.contains("nested"));
    const scratch_dir dir;
    const auto array = [&](std::uint32_t type, std::uint64_t count, const std::string& bytes) {
        const std::string value = little(type, 4) + little(count, 8) + bytes;
        const std::string path =
            dir.file("a", model({entry("a", 9, value), entry("b", 0, "1")}, {}, 9));
        return io::read_gguf_header(io::input_file::open(path), std::array{std::string_view("a")})
            .arrays.at("a");
    };
    CHECK(array(1, 2, "\xff\1").numbers == std::vector<double>{-1, 1});
    CHECK(array(0, 1, "\xff").numbers == std::vector<double>{255});
    CHECK(array(5, 1, little(0xfffffffeU, 4)).numbers == std::vector<double>{-2});
    CHECK(array(7, 2, std::string("\0\1", 2)).numbers == std::vector<double>{0, 1});
    CHECK(array(12, 1, little(0x3ff8000000000000, 8)).numbers == std::vector<double>{1.5});
    const auto refused = [&](std::uint32_t type, std::uint64_t count, const std::string& bytes) {
        return error_of(base::error_kind::input, [&] { array(type, count, bytes); });
    };
    has(refused(9, 1, little(4, 4) + little(0, 8)), "'a' is not an array of at most 4194304");
    has(refused(0, 4194305, std::string(4194305, '1')), "'a' is not an array of at most 4194304");
    has(refused(8, 1, text(std::string(65537, 'x'))), "a text of an array of 65537 bytes");
    has(refused(8, 1, little(99, 8)), "may be cut short");
}

TEST_CASE("GGUF: MXFP4 is decoded as ggml does, for every scale and code", "[gguf]") {
    const std::string expected = slurp(fixture("gguf_mxfp4.f32"));
    for (const char* name : {"gguf.gguf", "gguf_big.gguf"}) {
        const auto file = io::open_model(fixture(name));
        const std::size_t index = index_of(*file, "mxfp4");
        const io::tensor_info& info = file->tensors()[index];
        CHECK(info.type == dtype::bf16);
        CHECK(info.layout == "MXFP4");
        CHECK(info.shape == tensor::shape{32, 256});
        CHECK(info.bytes == 2 * 32 * 256);
        const std::vector<float> read = values(*file, "mxfp4");
        REQUIRE(expected.size() == 4 * read.size());
        for (std::size_t i = 0; i < read.size(); ++i) {
            float want = 0;
            std::memcpy(&want, expected.data() + 4 * i, 4);
            if (base::bits_of(read[i]) != base::bits_of(want)) FAIL(i << " " << read[i]);
        }
        // Any range of bytes is a part of the whole.
        const std::string all = content(*file, index);
        const auto source = file->open(index);
        for (std::size_t begin = 0; begin < 300; begin += 13) {
            std::string part(begin * 7 + 1, ' ');
            source->read(begin, std::as_writable_bytes(std::span(part)));
            CHECK(part == all.substr(begin, part.size()));
        }
    }
}

TEST_CASE("GGUF: blocks of each type are decoded as the gguf package does", "[gguf]") {
    const auto expected = io::open_model(fixture("gguf_blocks_values.safetensors"));
    int decoded = 0;
    for (const char* name : {"gguf_blocks.gguf", "gguf_blocks_big.gguf"}) {
        const auto file = io::open_model(fixture(name));
        for (const io::gguf_type& type : io::gguf_types) {
            if (type.decode == nullptr || type.read_as != dtype::f32) continue;
            INFO(name << " " << type.name);
            ++decoded;
            const std::string tensor(type.name);
            const std::size_t index = index_of(*file, tensor);
            const io::tensor_info& info = file->tensors()[index];
            CHECK(info.layout == type.name);
            CHECK(info.bytes == 4 * info.elements);
            const std::vector<float> read = values(*file, tensor);
            const std::vector<float> want = values(*expected, tensor);
            REQUIRE(read.size() == want.size());
            for (std::size_t i = 0; i < read.size(); ++i) {
                const bool nan = std::isnan(read[i]) && std::isnan(want[i]);
                if (!nan && base::bits_of(read[i]) != base::bits_of(want[i])) {
                    FAIL(i << ": " << read[i] << " is not " << want[i]);
                }
            }
            const std::string all = content(*file, index);
            std::string part(1001, ' ');
            part.resize(std::min(part.size(), all.size() - 23));
            file->open(index)->read(23, std::as_writable_bytes(std::span(part)));
            CHECK(part == all.substr(23, part.size()));
        }
    }
    CHECK(decoded == 2 * 24);
}

TEST_CASE("GGUF: every point of the codebooks is that of the gguf package", "[gguf]") {
    const auto expected = io::open_model(fixture("gguf_blocks_values.safetensors"));
    for (const char* file : {"gguf_blocks.gguf", "gguf_blocks_big.gguf"}) {
        const auto blocks = io::open_model(fixture(file));
        for (const char* type : {"IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"}) {
            const std::string name = std::string(type) + ".points";
            INFO(file << " " << name);
            CHECK(values(*blocks, name) == values(*expected, name));
        }
    }
}

TEST_CASE("GGUF: other quantized types are listed by name and refused", "[gguf]") {
    const scratch_dir dir;
    const auto newer =
        io::open_model(dir.file("new.gguf", model({}, {tensor_entry("t", {32}, 77, 0)}, 8)));
    has(newer->tensors()[0].note, "unknown ggml type 77");
    for (const io::gguf_type& type : io::gguf_types) {
        if (type.read_as) continue;
        const auto file = io::open_model(dir.file(
            "other.gguf",
            model({}, {tensor_entry("t", {type.block_elements}, type.id, 0)}, type.block_bytes)));
        CHECK(file->tensors()[0].type == dtype::other);
        const std::string message = error_of(base::error_kind::input, [&] { file->open(0); });
        has(message, "ggml's " + std::string(type.name) + " blocks are not decoded");
    }
}

TEST_CASE("GGUF: false headers", "[gguf][hostile]") {
    const scratch_dir dir;
    const auto refused = [&](const std::string& bytes) {
        return open_error(dir.file("bad.gguf", bytes));
    };
    const std::string huge = little(~std::uint64_t{0}, 8);
    const std::string sound = model({}, {tensor_entry("t", {8}, 0, 0)}, 32);
    CHECK(io::open_model(dir.file("good.gguf", sound))->tensors().size() == 1);

    has(refused("GGUF" + little(3, 4) + huge + little(0, 8)),
        "states 18446744073709551615 tensors");
    has(refused("GGUF" + little(3, 4) + little(0, 8) + huge),
        "metadata entries, which is impossible");
    has(refused(model({huge}, {}, 99)), "a metadata key of 18446744073709551615 bytes");
    has(refused(model({entry("k", 8, huge)}, {}, 99)), "may be cut short");
    has(refused(model({entry("k", 9, little(8, 4) + huge)}, {}, 99)),
        "an array of 18446744073709551615 STRING does not fit");
    has(refused(model({entry("k", 9, little(6, 4) + huge)}, {}, 99)), "FLOAT32 does not fit");
    has(refused(model({entry("k", 13, "")}, {}, 99)), "unknown type 13 of a metadata value");
    has(refused(model({entry("k", 4, little(1, 4)), entry("k", 4, little(1, 4))}, {}, 99)),
        "two metadata entries named 'k'");
    std::string deep;
    for (int i = 0; i < 9; ++i) deep += little(9, 4) + little(1, 8);
    has(refused(model({entry("k", 9, deep)}, {}, 99)), "nested more than 8 deep");
    for (const std::uint64_t alignment : {0u, 3u}) {
        has(refused(model({entry("general.alignment", 4, little(alignment, 4))}, {}, 99)),
            "not a power of two");
    }
    has(refused(model({entry("general.alignment", 8, text("32"))}, {}, 99)), "not a power of two");

    const auto one = [&](const std::string& described) { return model({}, {described}, 32); };
    has(refused(one(tensor_entry("t", {9}, 0, 0))), "36 bytes from 0 on go beyond the file");
    has(refused(one(tensor_entry("t", {1}, 0, 64))), "go beyond the file");
    has(refused(one(tensor_entry("t", {1}, 0, ~std::uint64_t{31}))), "go beyond the file");
    has(refused(one(tensor_entry("t", {1}, 0, 4))), "not a multiple of the alignment 32");
    has(refused(one(tensor_entry("t", {1, 1, 1, 1, 1}, 0, 0))), "5 axes; GGUF has at most 4");
    has(refused(one(tensor_entry("t", {~std::uint64_t{0}, 2}, 0, 0))), "is too large");
    has(refused(one(tensor_entry("t", {33}, 39, 0))), "rows of 33 elements cannot be MXFP4");
    has(refused(one(text(std::string(1025, 'x')))), "a tensor's name of 1025 bytes");
    has(refused(model({}, {tensor_entry("t", {8}, 0, 0), tensor_entry("t", {8}, 0, 32)}, 64)),
        "two tensors of this name");
    has(refused(model({}, {tensor_entry("t", {16}, 0, 0), tensor_entry("u", {8}, 0, 32)}, 64)),
        "tensor 'u': at byte 128: overlaps the data of 't'");
}

TEST_CASE("GGUF: every cut and every changed byte is refused or read without harm",
          "[gguf][hostile]") {
    const scratch_dir dir;
    const std::string sound = slurp(fixture("gguf.gguf"));
    for (std::size_t length = 0; length < 1600; length += 7) {
        has(open_error(dir.file("cut.gguf", sound.substr(0, length))), "");
    }
    int opened = 0;
    for (std::size_t at = 4; at < 1500; at += 3) {
        std::string damaged = sound;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
        try {
            const auto file = io::open_model(dir.file("bad.gguf", damaged));
            ++opened;
            for (std::size_t i = 0; i < file->tensors().size(); ++i) {
                if (file->tensors()[i].note.empty()) content(*file, i);
            }
        } catch (const base::error& e) {
            CHECK(static_cast<int>(e.kind()) == static_cast<int>(base::error_kind::input));
        }
    }
    CHECK(opened > 0);
}
