// SPDX-License-Identifier: Apache-2.0
// Recognising file formats, and raw binary.
#include <sys/stat.h>
#include <zip.h>

#include "libmx/io/foreign_formats.hpp"
#include "libmx/io/readers.hpp"
#include "tests/io/fixture_values.hpp"

using namespace mx;
using namespace mx::test;

TEST_CASE("what is not read is named", "[formats]") {
    const scratch_dir dir;
    for (const io::foreign_format& foreign : io::foreign_formats) {
        const std::string bytes = std::string(foreign.offset, '\x01') + std::string(foreign.mark) +
                                  std::string(64, '\x02');
        const std::string message = open_error(dir.file("model.safetensors.bin", bytes));
        has(message, "looks like " + std::string(foreign.name) + ", which mx does not read");
        has(message, foreign.advice);
        has(message, io::readable_formats() + ", and raw binary");
    }
    has(open_error(dir.file("a.txt", "hello\n")), "looks like text");
    has(open_error(dir.file("a.bin", "\x01\x02\x03\x04")), "looks like unknown binary data");
    has(open_error(dir.file("a.bin", std::string(99, '\0'))), "looks like zero bytes only");
    has(open_error(dir.file("empty", "")), "looks like an empty file");
}

TEST_CASE("the name only helps where the bytes say nothing", "[formats]") {
    const scratch_dir dir;
    has(open_error(dir.file("cut.npy", "\x01\x02")), "too short for a .npy array");
    has(open_error(dir.file("cut.safetensors", "")), "too short for a safetensors file");
    has(open_error(dir.file("cut.npz", "\x01\x02")), "not a valid zip archive");
    has(open_error(dir.file("cut.h5", "\x01\x02")), "not a valid HDF5 file");
    std::filesystem::copy_file(fixture("version2.npy"), dir / "wrong.safetensors");
    CHECK(io::open_model(dir / "wrong.safetensors")->tensors().size() == 1);
}

TEST_CASE("zip archives that are no npz are named", "[formats][npz]") {
    const scratch_dir dir;
    for (const io::foreign_archive& foreign : io::foreign_archives) {
        const std::string path = dir / "model.zip";
        int problem = 0;
        zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &problem);
        REQUIRE(zip != nullptr);
        const std::string name = "archive/" + std::string(foreign.entry);
        zip_file_add(zip, name.c_str(), zip_source_buffer(zip, "x", 1, 0), 0);
        REQUIRE(zip_close(zip) == 0);
        has(open_error(path), "looks like " + std::string(foreign.name));
    }
    has(open_error(dir.file("empty.npz", std::string("PK\x05\x06", 4) + std::string(18, '\0'))),
        "zip archive without .npy arrays");
}

TEST_CASE("directories of other checkpoints are named", "[formats]") {
    for (const io::foreign_archive& foreign : io::foreign_directories) {
        const scratch_dir dir;
        dir.file(std::string(foreign.entry), "x");
        const std::string message = open_error(dir.path());
        has(message, "looks like " + std::string(foreign.name) + ", which mx does not read");
        has(message, foreign.advice);
    }
}

TEST_CASE("what cannot be opened", "[formats]") {
    const scratch_dir dir;
    has(open_error(dir / "missing"), "missing: cannot open: No such file");
    has(open_error("/dev/null"), "is not a regular file");
}

TEST_CASE("every reader says what it is", "[formats]") {
    for (const io::reader_format& format : io::reader_formats) {
        CHECK(!format.name.empty());
        CHECK(!format.summary.empty());
        CHECK(format.open != nullptr);
    }
}

TEST_CASE("raw binary", "[raw]") {
    const scratch_dir dir;
    const std::string path = dir.file("weights.bin", "head\x01\x02\x03\x04\x05\x06tail");
    io::open_options options;
    options.shape = "2x3";
    options.dtype = "u8";
    options.offset = 4;
    const auto file = io::open_model(path, options);
    REQUIRE(file->tensors().size() == 1);
    CHECK(file->tensors()[0].name == "weights");
    CHECK(file->tensors()[0].shape == tensor::shape{2, 3});
    CHECK(values(*file, "weights") == std::vector<float>{1, 2, 3, 4, 5, 6});

    options.dtype = "F4";
    options.shape = "3";
    CHECK(io::open_model(path, options)->tensors()[0].bytes == 2);
    options.shape = "-";
    CHECK(io::open_model(path, options)->tensors()[0].shape.empty());
}

TEST_CASE("raw binary that does not fit or is not described", "[raw][hostile]") {
    const scratch_dir dir;
    const std::string path = dir.file("w.bin", "0123456789");
    const auto with = [&](const char* shape, const char* type, std::uint64_t offset) {
        io::open_options options;
        options.shape = shape;
        options.dtype = type;
        options.offset = offset;
        return options;
    };
    const auto usage = [&](const char* shape, const char* type, std::uint64_t offset) {
        return error_of(base::error_kind::usage,
                        [&] { io::open_model(path, with(shape, type, offset)); });
    };
    has(usage("3", "", 0), "needs both a shape and a dtype");
    has(usage("", "u8", 0), "needs both a shape and a dtype");
    has(usage("", "", 4), "needs both a shape and a dtype");
    for (const char* shape : {"3x", "x3", "3,4", "-1", "a", "3 ", "18446744073709551616"}) {
        has(usage(shape, "u8", 0), "is not of the form 64x128");
    }
    has(usage("4611686018427387904x2", "u8", 0), "too large");
    has(usage("3", "other", 0), "unknown dtype 'other'");
    has(open_error(path, with("11", "u8", 0)), "takes 11 bytes, the file has 10 in all");
    has(open_error(path, with("1", "u8", 10)), "takes 1 bytes, the file has 10 in all");
    has(open_error(path, with("1", "u8", ~std::uint64_t{0})), "the file has 10 in all");
}
