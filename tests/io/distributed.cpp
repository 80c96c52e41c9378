// SPDX-License-Identifier: Apache-2.0
// Checkpoints of torch.distributed.checkpoint, and tensors put together from shards.
#include <filesystem>

#include "libmx/files/pytorch/distributed_reader.hpp"
#include "libmx/io/shards.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/pickles.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

const std::string meta = "torch.distributed.checkpoint.metadata";

std::string p_object(const std::string& module, const std::string& name, const std::string& state) {
    return p_global(module, name) + ")\x81" + state + "b";
}
std::string p_size(const std::vector<std::int64_t>& extents) {
    return p_call(p_global("torch", "Size"), {p_ints(extents)});
}

struct shard {
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> sizes;
    std::string path = "a.distcp";
    std::int64_t offset = 0;
    std::int64_t length = 1;
};

// The metadata of one tensor "w" of float32.
std::string metadata(const std::vector<std::int64_t>& size, const std::vector<shard>& shards) {
    std::string chunks = "](";
    std::string places = "}(";
    for (const shard& s : shards) {
        chunks += p_object(meta, "ChunkStorageMetadata",
                           p_dict({{"offsets", p_size(s.offsets)}, {"sizes", p_size(s.sizes)}}));
        places += p_object(meta, "MetadataIndex",
                           p_dict({{"fqn", p_text("w")}, {"offset", p_size(s.offsets)}})) +
                  p_object("torch.distributed.checkpoint.filesystem", "_StorageInfo",
                           p_dict({{"relative_path", p_text(s.path)},
                                   {"offset", p_int(s.offset)},
                                   {"length", p_int(s.length)}}));
    }
    const std::string tensor = p_object(
        meta, "TensorStorageMetadata",
        p_dict({{"properties",
                 p_object(meta, "TensorProperties", p_tuple({p_global("torch", "float32")}))},
                {"size", p_size(size)},
                {"chunks", chunks + "e"}}));
    return p_pickle(p_object(meta, "Metadata",
                             p_dict({{"state_dict_metadata", p_dict({{"w", tensor}})},
                                     {"storage_data", places + "u"}})));
}

}  // namespace

TEST_CASE("distributed: a checkpoint of two ranks", "[distributed]") {
    for (const char* path : {"torch_distributed", "torch_distributed/.metadata"}) {
        const auto file = io::open_model(fixture(path));
        check_fixture(*file, "rows", dtype::f32, {5, 7});
        check_fixture(*file, "columns", dtype::bf16, {6, 70});
        check_fixture(*file, "one_row", dtype::f32, {1, 7});
        check_fixture(*file, "replicated", dtype::i32, {5, 7});
        check_fixture(*file, "scalar", dtype::f32, {});
        check_fixture(*file, "optimizer.state.w.exp_avg", dtype::f32, {4, 3});
        CHECK(file->tensors().size() == 6);
        CHECK(file->files().size() == 3);
        CHECK(file->metadata().at("(others)") == "values that are not tensors: 1");
        // Ranges that begin and end inside elements and shards.
        const std::size_t columns = index_of(*file, "columns");
        const std::string whole = content(*file, columns);
        const auto source = file->open(columns);
        for (std::size_t at = 0; at < whole.size(); at += 41) {
            std::string part(std::min<std::size_t>(whole.size() - at, 171), '\0');
            source->read(at, std::as_writable_bytes(std::span(part)));
            CHECK(part == whole.substr(at, part.size()));
        }
    }
}

TEST_CASE("distributed: files that are missing, cut or not what is promised",
          "[distributed][hostile]") {
    const scratch_dir dir;
    const auto copy = [&](const char* name) {
        std::filesystem::copy_file(fixture(std::string("torch_distributed/") + name), dir / name,
                                   std::filesystem::copy_options::overwrite_existing);
    };
    copy(".metadata");
    has(open_error(dir.path()), "__0_0.distcp': No such file");
    copy("__0_0.distcp");
    copy("__1_0.distcp");
    CHECK(io::open_model(dir.path())->tensors().size() == 6);
    const std::string rank = slurp(dir / "__0_0.distcp");
    dir.file("__0_0.distcp", rank.substr(0, rank.size() - 1));
    has(open_error(dir.path()), "is beyond the end of the file");
    // The right size, and something else inside.
    dir.file("__0_0.distcp", std::string(rank.size(), 'x'));
    const auto file = io::open_model(dir.path());
    has(error_of(base::error_kind::input, [&] { content(*file, index_of(*file, "rows")); }),
        "not a valid zip archive");
    const std::string metadata_bytes = slurp(dir / ".metadata");
    for (std::size_t length = 0; length < metadata_bytes.size(); length += 7) {
        error_of(base::error_kind::input,
                 [&] { io::read_distributed_metadata(metadata_bytes.substr(0, length), "m"); });
    }
}

TEST_CASE("distributed: a shard that is another tensor", "[distributed][hostile]") {
    const scratch_dir dir;
    const std::string shard_bytes = slurp(torch_zip(dir / "s.pt", p_four()));
    dir.file("a.distcp", shard_bytes);
    const auto length = static_cast<std::int64_t>(shard_bytes.size());
    const auto load = [&](const std::vector<std::int64_t>& size) {
        const std::vector<std::int64_t> first(size.size(), 0);
        dir.file(".metadata", metadata(size, {{first, size, "a.distcp", 0, length}}));
        return io::open_model(dir.path());
    };
    CHECK(values(*load({4}), "w") == std::vector<float>{1, 2, 3, 4});
    const auto other = load({2, 2});
    has(error_of(base::error_kind::input, [&] { content(*other, 0); }),
        "its shard is 4 of float32, the metadata says 2x2 of float32");
}

TEST_CASE("distributed: the pickle of a shard is that of one tensor", "[distributed][hostile]") {
    const scratch_dir dir;
    // The tensor, behind a text of 100 KB that is dropped again.
    const std::string padding = "X" + little(100000, 4) + std::string(100000, 'x') + "0";
    const std::string bytes = slurp(torch_zip(dir / "s.pt", padding + p_four()));
    dir.file("a.distcp", bytes);
    const auto length = static_cast<std::int64_t>(bytes.size());
    dir.file(".metadata", metadata({4}, {{{0}, {4}, "a.distcp", 0, length}}));
    const auto model = io::open_model(dir.path());
    has(error_of(base::error_kind::input, [&] { content(*model, 0); }),
        "mx reads up to 64 KiB here");
}

TEST_CASE("distributed: false metadata", "[distributed][hostile]") {
    const auto refused = [](const std::string& pickle) {
        return error_of(base::error_kind::input,
                        [&] { io::read_distributed_metadata(pickle, "m"); });
    };
    const std::int64_t huge = INT64_MAX;
    CHECK(io::read_distributed_metadata(metadata({4}, {{{0}, {1}}, {{1}, {3}}}), "m")
              .tensors[0]
              .boxes.size() == 2);
    has(refused(metadata({4}, {{{0}, {1}}, {{2}, {2}}})), "its shards leave a gap");
    has(refused(metadata({4}, {{{0}, {3}}, {{1}, {3}}})), "its shards overlap");
    has(refused(metadata({4, 4}, {{{0, 0}, {3, 2}}, {{0, 2}, {4, 2}}, {{2, 0}, {1, 2}}})),
        "its shards overlap");
    has(refused(metadata({4}, {{{0}, {5}}})), "reaches beyond the tensor");
    has(refused(metadata({4}, {{{huge}, {huge}}})), "reaches beyond the tensor");
    has(refused(metadata({4}, {{{0, 0}, {4, 1}}})), "another number of axes");
    has(refused(metadata({huge, huge}, {})), "its extents are too large");
    has(refused(metadata({4}, {{{0}, {-1}}})), "lists its sizes not as PyTorch does");
    for (const char* path : {"../a.distcp", "/etc/passwd", "x/../../y", ""}) {
        has(refused(metadata({4}, {{{0}, {4}, path}})), "is outside the directory");
    }
    has(refused(p_pickle("N")), "but not of torch.distributed.checkpoint");
    has(refused(p_pickle(p_object(meta, "Metadata", "N"))), "the metadata lacks");
}

TEST_CASE("shards: boxes of any arrangement", "[distributed]") {
    // A 3-D tensor of bytes cut along every axis; byte i is i.
    const tensor::shape shape{4, 5, 6};
    std::vector<io::shard_box> boxes;
    for (std::uint64_t i = 0; i < 4; i += 2) {
        for (std::uint64_t j = 0; j < 5; j += 3) {
            for (std::uint64_t k = 0; k < 6; k += 4) {
                boxes.push_back(
                    {{i, j, k},
                     {2, std::min<std::uint64_t>(3, 5 - j), std::min<std::uint64_t>(4, 6 - k)}});
            }
        }
    }
    std::reverse(boxes.begin(), boxes.end());
    std::uint64_t budget = 1000;
    CHECK(io::check_shards(shape, boxes, budget).empty());
    class bytes final : public io::byte_source {
      public:
        explicit bytes(std::string text) : text_(std::move(text)) {}
        void read(std::uint64_t offset, std::span<std::byte> out) const override {
            REQUIRE(offset + out.size() <= text_.size());
            std::copy_n(bytes_of(text_).begin() + static_cast<std::ptrdiff_t>(offset), out.size(),
                        out.begin());
        }

      private:
        std::string text_;
    };
    const auto source = io::from_shards(shape, boxes, 1, [&](std::size_t index) {
        const io::shard_box& box = boxes[index];
        std::string text;
        for (std::uint64_t i = 0; i < box.extents[0]; ++i) {
            for (std::uint64_t j = 0; j < box.extents[1]; ++j) {
                for (std::uint64_t k = 0; k < box.extents[2]; ++k) {
                    text += static_cast<char>(((box.origin[0] + i) * 5 + box.origin[1] + j) * 6 +
                                              box.origin[2] + k);
                }
            }
        }
        return std::make_shared<const bytes>(text);
    });
    for (std::size_t at = 0; at < 120; at += 7) {
        std::string part(std::min<std::size_t>(120 - at, 50), '\xff');
        source->read(at, std::as_writable_bytes(std::span(part)));
        std::string wanted;
        for (std::size_t i = 0; i < part.size(); ++i) wanted += static_cast<char>(at + i);
        CHECK(part == wanted);
    }
    // Scalars, empty tensors, and more comparisons than are allowed.
    CHECK(io::check_shards({}, {{{}, {}}}, budget).empty());
    CHECK(io::check_shards({}, {}, budget) == "its shards leave a gap");
    CHECK(io::check_shards({}, {{{}, {}}, {{}, {}}}, budget) == "its shards overlap");
    CHECK(io::check_shards({0, 3}, {}, budget).empty());
    std::vector<io::shard_box> columns;
    for (std::uint64_t k = 0; k < 100; ++k) columns.push_back({{0, k}, {1, 1}});
    CHECK(io::check_shards({1, 100}, columns, budget) == "it has too many shards");
}

TEST_CASE("shards: many side by side are opened once", "[distributed]") {
    constexpr std::uint64_t rows = 3, across = 100;
    std::vector<io::shard_box> boxes;
    for (std::uint64_t k = 0; k < across; ++k) boxes.push_back({{0, k}, {rows, 1}});
    std::size_t opened = 0;
    const auto source = io::from_shards({rows, across}, boxes, 1, [&](std::size_t index) {
        ++opened;
        return io::make_source([index](std::uint64_t, std::span<std::byte> out) {
            std::ranges::fill(out, static_cast<std::byte>(index));
        });
    });
    std::string all(rows * across, '\xff');
    source->read(0, std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == static_cast<char>(i % across));
    CHECK(opened == across);
}

TEST_CASE("distributed: the file of a rank alone names its directory", "[distributed]") {
    const std::string file = fixture("torch_distributed/__0_0.distcp");
    const std::string directory = std::filesystem::path(file).parent_path().string();
    has(open_error(file), "name its directory: " + directory);
    // Its bytes can be read as what they are.
    io::open_options raw;
    raw.shape = "4";
    raw.dtype = "U8";
    CHECK(io::open_model(file, raw)->tensors().size() == 1);
}
