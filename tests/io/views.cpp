// SPDX-License-Identifier: Apache-2.0
// Splits, transposition, and the meaning of input names.
#include <cmath>
#include <numeric>

#include "libmx/engine/skip.hpp"
#include "libmx/io/input_paths.hpp"
#include "libmx/io/strided.hpp"
#include "libmx/studies/convert/convert.hpp"
#include "tests/io/fixture_values.hpp"
#include "tests/io/model_file.hpp"

using namespace mx;
using namespace mx::test;
using tensor::dtype;

namespace {

std::vector<float> counted(std::size_t count) {
    std::vector<float> v(count);
    std::iota(v.begin(), v.end(), 0.0f);
    return v;
}

engine::view_request splitting(const std::string& text) {
    engine::view_request r;
    r.splits = {text};
    return r;
}

engine::view_request transposing(const std::string& glob) {
    engine::view_request r;
    r.transposed = {glob};
    return r;
}

std::string usage_error(const std::string& path, const engine::view_request& views) {
    return error_of(base::error_kind::usage, [&] { model_of({path}, views); });
}

}  // namespace

TEST_CASE("a fused tensor is split", "[views]") {
    const scratch_dir dir;
    const std::string path =
        write_model(dir / "m.safetensors", {{"qkv", dtype::f32, {6, 4}, f32_bytes(counted(24))},
                                            {"other", dtype::f32, {1}, f32_bytes({1})}});
    const engine::model m = model_of({path}, splitting("qkv=q:3,k:1,v:2"));
    REQUIRE(m.select({}).size() == 4);
    CHECK(m.select({})[1].info().name == "qkv.k");
    CHECK(info_in(m, "qkv.v")->shape == tensor::shape{2, 4});
    const std::vector<float> all = counted(24);
    CHECK(values_in(m, "qkv.q") == std::vector<float>(all.begin(), all.begin() + 12));
    CHECK(values_in(m, "qkv.k") == std::vector<float>(all.begin() + 12, all.begin() + 16));
    CHECK(values_in(m, "qkv.v") == std::vector<float>(all.begin() + 16, all.end()));

    for (const char* axis : {"qkv@1=a:1,b:3", "q*@-1=a:1,b:3"}) {
        const engine::model across = model_of({path}, splitting(axis));
        CHECK(values_in(across, "qkv.a") == std::vector<float>{0, 4, 8, 12, 16, 20});
        CHECK(values_in(across, "qkv.b") ==
              std::vector<float>{1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23});
    }
}

TEST_CASE("parts of the middle axis and of narrow types", "[views]") {
    const scratch_dir dir;
    const std::string path = write_model(
        dir / "m.safetensors", {{"stack", dtype::f32, {2, 3, 2}, f32_bytes(counted(12))},
                                {"f4", dtype::f4, {2, 3}, std::string("\x21\x43\x65", 3)}});
    engine::view_request r = splitting("stack@1=up:2,down:1");
    r.splits.emplace_back("f4=a:1,b:1");
    const engine::model m = model_of({path}, r);
    CHECK(values_in(m, "stack.up") == std::vector<float>{0, 1, 2, 3, 6, 7, 8, 9});
    CHECK(values_in(m, "stack.down") == std::vector<float>{4, 5, 10, 11});
    CHECK(values_in(m, "f4.a") == std::vector<float>{0.5f, 1, 1.5f});
    CHECK(values_in(m, "f4.b") == std::vector<float>{2, 3, 4});
}

TEST_CASE("long runs are read as they are, short ones together", "[views]") {
    // A source that counts requested bytes.
    class numbers final : public io::byte_source {
      public:
        explicit numbers(int* reads) : reads_(reads) {}
        void read(std::uint64_t offset, std::span<std::byte> out) const override {
            ++*reads_;
            for (std::byte& b : out) b = static_cast<std::byte>(offset++ * 31 % 251);
        }

      private:
        int* reads_;
    };
    int reads = 0;
    const auto check = [&](const tensor::shape& shape, std::uint64_t begin, std::uint64_t count) {
        reads = 0;
        const auto part =
            io::part_of_axis(std::make_shared<numbers>(&reads), shape, 1, begin, count, 1);
        std::vector<std::byte> got(static_cast<std::size_t>(shape[0] * count));
        part->read(0, got);
        for (std::uint64_t i = 0; i < got.size(); ++i) {
            const std::uint64_t at = i / count * shape[1] + begin + i % count;
            REQUIRE(got[i] == static_cast<std::byte>(at * 31 % 251));
        }
    };
    check({1000, 100}, 7, 5);
    CHECK(reads == 1);
    check({3, 100000}, 99000, 1000);
    CHECK(reads == 3);
}

TEST_CASE("two axes change places", "[views]") {
    const scratch_dir dir;
    const std::string path = write_model(dir / "m.safetensors",
                                         {{"kernel", dtype::f32, {2, 3}, f32_bytes(counted(6))},
                                          {"stack", dtype::f32, {5, 2, 3}, f32_bytes(counted(30))},
                                          {"f4", dtype::f4, {2, 3}, std::string("\x21\x43\x65", 3)},
                                          {"bias", dtype::f32, {2}, f32_bytes({8, 9})}});
    const engine::model m = model_of({path}, transposing("*"));
    CHECK(info_in(m, "kernel")->shape == tensor::shape{3, 2});
    CHECK(values_in(m, "kernel") == std::vector<float>{0, 3, 1, 4, 2, 5});
    CHECK(values_in(m, "f4") == std::vector<float>{0.5f, 2, 1, 3, 1.5f, 4});
    CHECK(values_in(m, "bias") == std::vector<float>{8, 9});
    CHECK(info_in(m, "stack")->shape == tensor::shape{5, 3, 2});
    std::vector<float> stack;
    for (int e = 0; e < 5; ++e) {
        for (const int at : {0, 3, 1, 4, 2, 5}) stack.push_back(static_cast<float>(6 * e + at));
    }
    CHECK(values_in(m, "stack") == stack);
    // Back and forth between more matrices than are cached.
    for (const engine::tensor_ref& t : m.select({"stack"})) {
        const auto source = t.file->open(t.index);
        for (const std::size_t e : {4u, 0u, 3u, 1u, 2u, 0u, 4u}) {
            float value = 0;
            source->read((6 * e + 1) * 4, std::as_writable_bytes(std::span(&value, 1)));
            CHECK(value == stack[6 * e + 1]);
        }
    }
    CHECK(info_in(model_of({path}, transposing("kernel")), "stack")->shape ==
          tensor::shape{5, 2, 3});
}

TEST_CASE("a decoded tensor can be split and transposed", "[views][quantized]") {
    const scratch_dir dir;
    engine::view_request r = splitting("w=a:1,b:1");
    r.transposed = {"w.b"};
    const engine::model m = model_of(
        {write_model(dir / "m.safetensors", {{"w", dtype::f8_e4m3, {2, 32}, repeated(0x38, 64)},
                                             {"w_scale", dtype::f32, {2, 1}, f32_bytes({3, 5})}})},
        r);
    CHECK(values_in(m, "w.a") == std::vector<float>(32, 3.0f));
    CHECK(values_in(m, "w.b") == std::vector<float>(32, 5.0f));
    CHECK(info_in(m, "w.b")->shape == tensor::shape{32, 1});
}

TEST_CASE("views that do not fit", "[views][hostile]") {
    const scratch_dir dir;
    const std::string path =
        write_model(dir / "m.safetensors", {{"qkv", dtype::f32, {6, 4}, f32_bytes(counted(24))},
                                            {"bias", dtype::f32, {2}, f32_bytes({8, 9})}});
    has(usage_error(path, splitting("qkv=q:3,k:1")), "add up to the extent of axis 0, which is 6");
    has(usage_error(path, splitting("qkv=q:3,k:18446744073709551615,v:4")), "add up");
    has(usage_error(path, splitting("qkv@2=q:3")), "qkv has no axis 2");
    has(usage_error(path, splitting("qvk=q:6")), "the nearest name is 'qkv'");
    has(usage_error(path, splitting("qkv")), "NAME=PART:EXTENT");
    has(usage_error(path, splitting("qkv=q:0,k:6")), "'q:0' is not PART:EXTENT");
    has(usage_error(path, splitting("qkv=q:-1")), "'q:-1' is not PART:EXTENT");
    has(usage_error(path, splitting("qkv=")), "names no part");
    has(usage_error(path, transposing("nope*")), "no tensor has this name");
    has(usage_error(path, transposing("bias")), "has two axes");
}

TEST_CASE("files, directories and patterns are one model", "[inputs]") {
    const scratch_dir dir;
    for (const char* name : {"b.safetensors", "a.safetensors", "c.safetensors"}) {
        write_model(dir / name, {{"same", dtype::u8, {1}, std::string(name, 1)}});
    }
    dir.file("notes.txt", "text");
    const std::vector<std::string> sorted{dir / "a.safetensors", dir / "b.safetensors",
                                          dir / "c.safetensors"};
    CHECK(io::input_paths({dir / "*.safetensors"}) == sorted);
    CHECK(io::input_paths({dir.path()}) == sorted);
    CHECK(io::input_paths({dir / "[ab].safetensors", dir / "notes.txt"}) ==
          std::vector<std::string>{sorted[0], sorted[1], dir / "notes.txt"});
    CHECK(model_of(sorted).select({}).size() == 3);
    has(error_of(base::error_kind::usage, [&] { model_of({dir.path()}).select({}); }),
        "the model is there twice: 'same' is in");
    // A file with such a name is taken literally.
    CHECK(io::input_paths({dir.file("x[1].bin", "a")}) ==
          std::vector<std::string>{dir / "x[1].bin"});
    // With an index, the directory is the model that it describes.
    dir.file("model.safetensors.index.json", "{\"weight_map\":{\"same\":\"a.safetensors\"}}");
    CHECK(io::input_paths({dir.path()}) == std::vector<std::string>{dir.path()});
    CHECK(model_of({dir.path()}).select({}).size() == 1);
}

TEST_CASE("links that lead nowhere, patterns without a match", "[inputs][hostile]") {
    const scratch_dir dir;
    const auto refused = [](const std::string& name) {
        return error_of(base::error_kind::input, [&] { io::input_paths({name}); });
    };
    std::filesystem::create_symlink("loop2", dir / "loop");
    std::filesystem::create_symlink("loop", dir / "loop2");
    std::filesystem::create_symlink("gone", dir / "broken.safetensors");
    has(refused(dir / "loop"), "is a cyclic symbolic link");
    has(refused(dir / "broken.safetensors"), "symbolic link to 'gone', which does not exist");
    has(refused(dir / "br*"), "symbolic link to 'gone'");
    has(refused(dir / "*.npz"), "no file matches this pattern");
    write_model(dir / "a.safetensors", {{"a", dtype::u8, {1}, "a"}});
    has(refused(dir.path()), "symbolic link to 'gone'");
}

TEST_CASE("a packed file is seen as what it decodes to", "[views][quantized]") {
    const scratch_dir dir;
    std::vector<float> x(3 * 40 * 70);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16;
    }
    const std::string path =
        write_model(dir / "m.safetensors", {{"w", dtype::f32, {3, 40, 70}, f32_bytes(x)}});
    for (const char* recipe :
         {"mxfp4", "mxfp6:block=32x1", "mxfp4:block=4x4", "mxfp4:axis=flat", "mxint4:offset=fp16",
          "nvfp4", "fp8_128x128", "mxfp8:transform=hadamard,transform_size=16",
          "mxfp8:block=32x1,transform=random-hadamard,transform_size=16"}) {
        INFO(recipe);
        const codec::recipe r = codec::parse_recipe(recipe);
        const engine::model m = model_of({path});
        convert::quantize_model(m.select({}), r, false, dir / "v.safetensors", {});
        convert::quantize_model(m.select({}), r, true, dir / "p.safetensors", {});
        const engine::model packed = model_of({dir / "p.safetensors"});
        REQUIRE(packed.select({}).size() == 1);
        CHECK(info_in(packed, "w")->layout == codec::to_string(r));
        const std::vector<float> want = values_in(model_of({dir / "v.safetensors"}), "w");
        CHECK(values_in(packed, "w") == want);
        // Parts that begin and end anywhere.
        const engine::tensor_ref t = packed.select({}).front();
        const auto source = t.file->open(t.index);
        for (std::size_t first = 0; first < want.size(); first += 613) {
            for (const std::size_t size : {1u, 45u, 70u, 2900u}) {
                std::vector<float> part(std::min(size, want.size() - first));
                source->read(first * 4, std::as_writable_bytes(std::span(part)));
                REQUIRE(std::equal(part.begin(), part.end(),
                                   want.begin() + static_cast<std::ptrdiff_t>(first)));
            }
        }
        convert::dequantize_model(*io::open_model(dir / "p.safetensors"), dir / "d.safetensors",
                                  {});
        CHECK(values_in(model_of({dir / "d.safetensors"}), "w") == want);
    }
}

TEST_CASE("a packed file keeps the axes of its blocks", "[views][quantized]") {
    const scratch_dir dir;
    std::vector<float> x(3 * 64 * 40);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16;
    }
    for (const auto& [name, shape, entry, scales] :
         {std::tuple{"dense/kernel:0", tensor::shape{192, 40}, "F32 192x40 0-0",
                     tensor::shape{6, 40}},
          std::tuple{"layers.0.mlp.experts.down_proj", tensor::shape{3, 64, 40}, "F32 3x64x40 1-1",
                     tensor::shape{3, 2, 40}},
          std::tuple{"conv.weight", tensor::shape{40, 16, 4, 3}, "F32 40x16x4x3 1-3",
                     tensor::shape{40, 6}},
          std::tuple{"proj.weight", tensor::shape{120, 64}, "F32 120x64", tensor::shape{120, 2}}}) {
        INFO(name);
        const std::string path =
            write_model(dir / "m.safetensors", {{name, dtype::f32, shape, f32_bytes(x)}});
        for (const char* recipe : {"mxfp4", "nvfp4:outer=row", "mxfp8:block=16x16"}) {
            INFO(recipe);
            const codec::recipe r = codec::parse_recipe(recipe);
            const engine::model m = model_of({path});
            convert::quantize_model(m.select({}), r, false, dir / "v.safetensors", {});
            convert::quantize_model(m.select({}), r, true, dir / "p.safetensors", {});
            const auto file = io::open_model(dir / "p.safetensors");
            CHECK(file->metadata().at("mx.tensor." + std::string(name)) == entry);
            if (std::string_view(recipe) == "mxfp4") {
                CHECK(find(*file, std::string(name) + ".scales")->shape == scales);
            }
            const std::vector<float> want = values_in(model_of({dir / "v.safetensors"}), name);
            CHECK(values_in(model_of({dir / "p.safetensors"}), name) == want);
            convert::dequantize_model(*file, dir / "d.safetensors", {});
            CHECK(values_in(model_of({dir / "d.safetensors"}), name) == want);
        }
    }
}

TEST_CASE("integers of 32 and 64 bits are left out unless they are asked for", "[views]") {
    const scratch_dir dir;
    const std::string path =
        write_model(dir / "m.safetensors", {{"w", dtype::f32, {2}, f32_bytes({1, 2})},
                                            {"a", dtype::i32, {2}, repeated(1, 8)},
                                            {"b", dtype::u32, {2}, repeated(1, 8)},
                                            {"c", dtype::i64, {2}, repeated(1, 16)},
                                            {"d", dtype::u64, {2}, repeated(1, 16)},
                                            {"e", dtype::boolean, {2}, repeated(1, 2)},
                                            {"f", dtype::i16, {2}, repeated(1, 4)},
                                            {"g", dtype::u8, {2}, repeated(1, 2)}});
    const auto left_out = [](const engine::model& m) {
        std::vector<engine::skipped_tensor> skipped;
        engine::numeric_only(m.select({}), skipped);
        std::string names;
        for (const engine::skipped_tensor& s : skipped) names += s.tensor;
        return names;
    };
    engine::view_request views;
    CHECK(left_out(model_of({path})) == "abcde");
    CHECK(info_in(model_of({path}), "c")->note ==
          "I64 (indices or counts; --integers includes them)");
    views.raw = true;
    CHECK(left_out(model_of({path}, views)) == "abcde");
    views.integers = true;
    CHECK(left_out(model_of({path}, views)) == "e");
    views.raw = false;
    CHECK(left_out(model_of({path}, views)) == "e");
    // Raw data requires a dtype.
    io::open_options raw;
    raw.dtype = "I32";
    raw.shape = "4";
    CHECK(left_out(engine::model({path}, raw)).empty());
}

TEST_CASE("what is no weight passes through conversions bit for bit", "[views]") {
    const scratch_dir dir;
    const std::string ids = little(0x123456789abcdef0, 8) + little(512, 8);
    const std::string codes("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", 16);
    const engine::model m = model_of({write_model(
        dir / "m.safetensors", {{"position_ids", dtype::i64, {1, 2}, ids},
                                {"w", dtype::f32, {1, 32}, f32_bytes(counted(32))},
                                {"mask", dtype::boolean, {3}, std::string("\1\0\1", 3)},
                                {"x", dtype::i8, {1, 16}, codes},
                                {"x_scale", dtype::f8_e8m0, {1, 2}, "\x7f\x80"}})});
    const auto stored_bytes = [](const std::string& path, const std::string& name) {
        const auto file = io::open_model(path);
        const std::size_t i = index_of(*file, name);
        std::string bytes(static_cast<std::size_t>(file->tensors()[i].bytes), '\0');
        file->open(i)->read(0, std::as_writable_bytes(std::span(bytes)));
        return bytes;
    };
    const auto unchanged = [&](const std::string& path) {
        INFO(path);
        const auto file = io::open_model(path);
        const io::tensor_info& info = file->tensors()[index_of(*file, "position_ids")];
        CHECK(static_cast<int>(info.type) == static_cast<int>(dtype::i64));
        CHECK(info.shape == tensor::shape{1, 2});
        CHECK(stored_bytes(path, "position_ids") == ids);
        CHECK(stored_bytes(path, "mask") == std::string("\1\0\1", 3));
        CHECK(stored_bytes(path, "x") == codes);
        CHECK(stored_bytes(path, "x_scale") == "\x7f\x80");
    };
    const codec::recipe r = codec::parse_recipe("mxfp4");
    const std::string values = dir / "values.safetensors";
    const std::string packed = dir / "packed.safetensors";
    const std::string again = dir / "again.safetensors";
    const std::string hdf5 = dir / "values.h5";
    const std::string cast = dir / "cast.safetensors";
    const auto done = convert::quantize_model(m.select({}), r, false, values, {});
    CHECK(done.tensors == 1);
    CHECK(done.elements == 32);
    CHECK(done.bytes_written == 128 + 16 + 3 + 16 + 2);
    CHECK(done.kept.size() == 4);
    CHECK(done.skipped.empty());
    unchanged(values);
    convert::quantize_model(m.select({}), r, false, hdf5, {});
    unchanged(hdf5);
    convert::quantize_model(m.select({}), r, true, packed, {});
    unchanged(packed);
    CHECK(convert::dequantize_model(*io::open_model(packed), again, {}).kept.size() == 4);
    unchanged(again);
    CHECK(stored_bytes(again, "w") == stored_bytes(values, "w"));
    convert::cast_request request;
    for (const bool codes_only : {false, true}) {
        request.element = "e4m3";
        request.packed = codes_only;
        CHECK(convert::cast(m.select({}), request, cast, {}).kept.size() == 4);
        unchanged(cast);
        // 1 to 7 in E4M3 begin so.
        if (codes_only) CHECK(stored_bytes(cast, "w.codes").substr(1, 4) == "\x38\x40\x44\x48");
    }
}

TEST_CASE("whatever is decoded on the way can be written as float32", "[views][quantized]") {
    const scratch_dir dir;
    const std::string out = dir / "values.safetensors";
    for (const auto& [name, expected] :
         {std::pair{"layouts.safetensors", "layouts_values.safetensors"},
          {"gguf_blocks.gguf", "gguf_blocks_values.safetensors"},
          {"deepseek_v4.safetensors", "deepseek_v4_values.safetensors"}}) {
        INFO(name);
        const engine::model m = model_of({fixture(name)});
        const auto done = convert::dequantize_tensors(m.select({}), out, {});
        const auto decoded = io::open_model(fixture(expected));
        CHECK(done.tensors == decoded->tensors().size());
        CHECK(done.tensors + done.kept.size() == m.select({}).size());
        const auto written = io::open_model(out);
        for (const io::tensor_info& t : decoded->tensors()) {
            INFO(t.name);
            const io::tensor_info* const info = find(*written, t.name);
            REQUIRE(info != nullptr);
            CHECK(static_cast<int>(info->type) == static_cast<int>(dtype::f32));
            CHECK(info->shape == t.shape);
            const std::vector<float> got = values(*written, t.name);
            const std::vector<float> want = values(*decoded, t.name);
            REQUIRE(got.size() == want.size());
            for (std::size_t i = 0; i < got.size(); ++i) {
                CHECK((got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))));
            }
        }
    }
    // Refused inputs are passed on and named.
    const std::string path =
        write_model(dir / "m.safetensors", {{"w", dtype::f8_e4m3, {1, 32}, repeated(0x38, 32)},
                                            {"w_scale", dtype::u8, {1, 1}, "\x80"},
                                            {"x", dtype::u8, {1, 16}, repeated(1, 16)},
                                            {"x_scale", dtype::u8, {2}, "ab"}});
    const auto done = convert::dequantize_tensors(model_of({path}).select({}), out, {});
    CHECK(done.tensors == 1);
    REQUIRE(done.kept.size() == 2);
    has(done.kept[0].reason, "codes that are not decoded");
    const std::string plain = write_model(dir / "p.safetensors", {{"w", dtype::f32, {1}, "abcd"}});
    has(error_of(base::error_kind::input,
                 [&] { convert::dequantize_tensors(model_of({plain}).select({}), out, {}); }),
        "nothing here has a packing that mx decodes");
}

TEST_CASE("stacked experts by themselves, heads side by side", "[views]") {
    const scratch_dir dir;
    const std::string path = write_model(
        dir / "m.safetensors", {{"experts", dtype::f32, {2, 3, 4}, f32_bytes(counted(24))},
                                {"cache_k", dtype::f32, {2, 6}, f32_bytes(counted(12))},
                                {"flat", dtype::f4, {3, 1, 4}, repeated(0x32, 6)}});
    engine::view_request views;
    views.experts = {"experts", "flat"};
    views.heads = {"cache_*=3"};
    const engine::model m = model_of({path}, views);
    REQUIRE(m.select({}).size() == 2 + 1 + 3);
    CHECK(info_in(m, "experts.1")->shape == tensor::shape{3, 4});
    CHECK(values_in(m, "experts.0") == counted(12));
    CHECK(values_in(m, "experts.1").front() == 12);
    CHECK(values_in(m, "experts.1").back() == 23);
    CHECK(info_in(m, "experts.1")->stored_bytes + info_in(m, "experts.1")->bytes == 48);
    has(info_in(m, "experts.1")->remark, "matrix 1 of the stack experts");
    CHECK(values_in(m, "flat.2") == std::vector<float>{1, 1.5f, 1, 1.5f});
    CHECK(info_in(m, "cache_k")->shape == tensor::shape{2, 3, 2});
    CHECK(values_in(m, "cache_k") == counted(12));
    has(info_in(m, "cache_k")->remark, "3 heads of 2x6");
    const auto refused = [&](const std::vector<std::string>& experts,
                             const std::vector<std::string>& heads) {
        engine::view_request r;
        r.experts = experts;
        r.heads = heads;
        return usage_error(path, r);
    };
    has(refused({"cache_k"}, {}), "--experts 'cache_k': no tensor of this name has three axes");
    has(refused({"expert"}, {}),
        "it is a part of 'experts'; the pattern '*expert*' matches such names");
    has(refused({}, {"cache_k=4"}), "the last axis of cache_k (2x6) does not divide into 4");
    for (const char* text :
         {"cache_k", "cache_k=", "=2", "cache_k=0", "cache_k=-1", "cache_k=2x"}) {
        has(refused({}, {text}), "write NAME=COUNT");
    }
    has(refused({}, {"cache=2"}), "it is a part of 'cache_k'");
}

TEST_CASE("vectors in disguise become vectors where that is asked for", "[views]") {
    const scratch_dir dir;
    const std::string path =
        write_model(dir / "m.safetensors", {{"gains", dtype::f32, {1, 6, 1}, f32_bytes(counted(6))},
                                            {"row", dtype::f32, {1, 6}, f32_bytes(counted(6))},
                                            {"matrix", dtype::f32, {6, 2}, f32_bytes(counted(12))},
                                            {"single", dtype::f32, {1, 1}, f32_bytes({1})},
                                            {"scalar", dtype::f32, {}, f32_bytes({1})}});
    engine::view_request views;
    views.vectors = true;
    const engine::model m = model_of({path}, views);
    CHECK(info_in(m, "gains")->shape == tensor::shape{6});
    has(info_in(m, "gains")->remark, "a vector, stored as 1x6x1");
    CHECK(values_in(m, "gains") == counted(6));
    // Blocks already run along these, or there is more than one axis.
    CHECK(info_in(m, "row")->shape == tensor::shape{1, 6});
    CHECK(info_in(m, "matrix")->shape == tensor::shape{6, 2});
    CHECK(info_in(m, "single")->shape == tensor::shape{1, 1});
    CHECK(info_in(m, "scalar")->shape.empty());
    CHECK(info_in(model_of({path}), "gains")->shape == tensor::shape{1, 6, 1});
}

TEST_CASE("a directory that holds a model twice is refused with both files", "[views]") {
    const scratch_dir dir;
    const auto write = [&](const std::string& file, const std::vector<std::string>& names) {
        std::vector<stored> arrays;
        for (const std::string& name : names) {
            arrays.push_back({name, dtype::f32, {1}, f32_bytes({1})});
        }
        return write_model(dir / file, arrays);
    };
    const std::string f32 = write("a.safetensors", {"w", "x"});
    const std::string bf16 = write("b.safetensors", {"w", "y"});
    const auto refusal = [](const engine::model& m, const std::vector<std::string>& globs) {
        try {
            m.select(globs);
        } catch (const base::error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    const engine::model both({dir.path()}, {});
    const std::string said = refusal(both, {});
    CHECK(said == dir.path() + ": the model is there twice: 'w' is in " + f32 + " and in " + bf16 +
                      "; name one of the files, or choose with --tensor so that each name is "
                      "there once");
    CHECK(refusal(both, {"w"}) == said);
    CHECK(refusal(both, {"x", "y"}).empty());
    CHECK(both.tensors().size() == 4);
    for (const engine::input_file& f : both.files()) CHECK(f.given == dir.path());
    // Files that are named, or matched by a pattern, may be dumps of one model.
    CHECK(refusal(engine::model({f32, bf16}, {}), {}).empty());
    CHECK(refusal(engine::model({dir / "*.safetensors"}, {}), {}).empty());
    CHECK(engine::model({dir / "*.safetensors"}, {}).files()[1].given == dir / "*.safetensors");
    CHECK_THROWS_AS(engine::require_names_once(engine::model({f32, bf16}, {}).select({})),
                    base::error);
    // Another directory has a tensor of the same name of its own.
    std::filesystem::create_directory(dir / "sub");
    const engine::model two({dir.path(), write("sub/c.safetensors", {"x"})}, {});
    CHECK(refusal(two, {"x"}).empty());
}
