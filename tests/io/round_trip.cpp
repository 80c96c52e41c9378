// SPDX-License-Identifier: Apache-2.0
// The readers read back what the writers write.
#include "libmx/io/writer.hpp"
#include "tests/io/scratch_dir.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

std::string pattern(std::size_t size, unsigned seed) {
    std::string text(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = static_cast<char>(seed >> 24);
    }
    return text;
}

const std::vector<tensor::shape> shapes{{}, {0}, {1}, {7}, {3, 5}, {2, 0, 4}, {2, 3, 5}};

}  // namespace

TEST_CASE("safetensors: every dtype and shape comes back", "[safetensors][writer]") {
    const scratch_dir dir;
    std::vector<io::planned_array> plan;
    for (const tensor::dtype_row& row : tensor::dtypes) {
        if (row.id == dtype::other || row.id == dtype::c128) continue;
        for (const tensor::shape& shape : shapes) {
            plan.push_back({std::string(row.name) + "." + tensor::to_string(shape), row.id, shape});
        }
    }
    const std::string path = dir / "all.safetensors";
    const auto writer = io::create_safetensors(path, plan, {{"format", "pt"}, {"note", "\"\n"}});
    std::vector<std::string> data;
    for (std::size_t i = 0; i < plan.size(); ++i) {
        const auto elements = *tensor::element_count(plan[i].shape);
        data.push_back(
            pattern(*tensor::byte_count(plan[i].type, elements), static_cast<unsigned>(i)));
        writer->write(i, 0, bytes_of(data.back()));
    }
    writer->commit();

    const auto file = io::open_model(path);
    REQUIRE(file->tensors().size() == plan.size());
    for (std::size_t i = 0; i < plan.size(); ++i) {
        INFO(plan[i].name);
        CHECK(file->tensors()[i].name == plan[i].name);
        CHECK(file->tensors()[i].type == plan[i].type);
        CHECK(file->tensors()[i].shape == plan[i].shape);
        CHECK(content(*file, i) == data[i]);
    }
    CHECK(file->metadata() == io::metadata_map{{"format", "pt"}, {"note", "\"\n"}});
    const std::string stored = slurp(path);
    CHECK((8 + static_cast<unsigned char>(stored[0])) % 8 == 0);
}

TEST_CASE("npy: every dtype and shape comes back", "[npy][writer]") {
    const scratch_dir dir;
    for (const tensor::dtype_row& row : tensor::dtypes) {
        if (row.id == dtype::other || row.bits < 8) continue;
        for (const tensor::shape& shape : shapes) {
            const std::string path = dir / "a.npy";
            const auto writer = io::create_npy(path, {"x", row.id, shape});
            const std::string data =
                pattern(*tensor::byte_count(row.id, *tensor::element_count(shape)), 5);
            writer->write(0, 0, bytes_of(data));
            writer->commit();
            io::open_options options;
            if (row.name.substr(0, 2) == "F8") options.as = std::string(row.name);
            const auto file = io::open_model(path, options);
            INFO(row.name);
            REQUIRE(file->tensors().size() == 1);
            CHECK(file->tensors()[0].name == "a");
            CHECK(file->tensors()[0].type == row.id);
            CHECK(file->tensors()[0].shape == shape);
            CHECK(content(*file, 0) == data);
            CHECK(slurp(path).size() % 64 == data.size() % 64);
        }
    }
}

TEST_CASE("bytes never written are zero", "[writer]") {
    const scratch_dir dir;
    const auto writer = io::create_safetensors(dir / "z.safetensors", {{"z", dtype::u8, {9}}}, {});
    writer->write(0, 4, bytes_of("x"));
    writer->commit();
    const auto file = io::open_model(dir / "z.safetensors");
    CHECK(content(*file, 0) == std::string("\0\0\0\0x\0\0\0\0", 9));
}
